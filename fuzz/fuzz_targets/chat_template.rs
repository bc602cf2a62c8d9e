#![no_main]
edgepack_fuzz::target!(chat_template);
