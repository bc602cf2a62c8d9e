#![no_main]
edgepack_fuzz::target!(tokenizer_json);
