#![no_main]
edgepack_fuzz::target!(pt2);
