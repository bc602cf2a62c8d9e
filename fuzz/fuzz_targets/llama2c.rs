#![no_main]
edgepack_fuzz::target!(llama2c);
