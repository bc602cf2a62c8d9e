#![no_main]
edgepack_fuzz::target!(operator_schema);
