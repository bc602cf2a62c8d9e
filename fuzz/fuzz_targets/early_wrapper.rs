#![no_main]
edgepack_fuzz::target!(early_wrapper);
