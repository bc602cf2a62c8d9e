#![no_main]
edgepack_fuzz::target!(child_answers);
