#![no_main]
edgepack_fuzz::target!(packed_entry);
