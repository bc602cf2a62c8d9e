#![no_main]
edgepack_fuzz::target!(named_data);
