#![no_main]
edgepack_fuzz::target!(compile_specs);
