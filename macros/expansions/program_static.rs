include_program! { "../tests/data/corpus/models/mlp_portable.pte", module = classifier }
