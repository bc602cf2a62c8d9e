#![no_main]
edgepack_fuzz::target!(flat_data);
