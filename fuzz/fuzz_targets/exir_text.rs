#![no_main]
edgepack_fuzz::target!(exir_text);
