#![no_main]
edgepack_fuzz::target!(gzip);
