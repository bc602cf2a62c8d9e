#![no_main]
edgepack_fuzz::target!(saved_session);
