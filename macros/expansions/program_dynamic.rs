include_program! { "../tests/data/corpus/models/dynbatch_portable.pte" }
