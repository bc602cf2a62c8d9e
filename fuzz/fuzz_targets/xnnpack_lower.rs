#![no_main]
edgepack_fuzz::target!(xnnpack_lower);
