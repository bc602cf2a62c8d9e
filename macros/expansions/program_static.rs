include_program! { "../tests/corpus/models/mlp_portable.pte", module = classifier }
