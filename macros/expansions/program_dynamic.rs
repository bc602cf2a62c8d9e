include_program! { "../tests/corpus/models/dynbatch_portable.pte" }
