#[automatically_derived]
impl ::edgepack_format::spec::CompileSpecs for Options {
    fn to_specs(
        &self,
    ) -> ::edgepack_format::__alloc::vec::Vec<
        ::edgepack_format::pte::CompileSpec<'static>,
    > {
        let mut specs = ::edgepack_format::__alloc::vec::Vec::new();
        specs.push(::edgepack_format::spec::row::<u32>("MAX-VALUE", &self.max_value));
        specs.push(::edgepack_format::spec::row::<bool>("fuse", &self.fused));
        specs.push(::edgepack_format::spec::row::<String>("DEVICE", &self.device));
        specs.push(::edgepack_format::spec::row::<Vec<f32>>("WEIGHTS", &self.weights));
        specs
            .extend(
                self
                    .cache_dir
                    .as_ref()
                    .map(|value| ::edgepack_format::spec::row::<
                        String,
                    >("CACHE-DIR", value)),
            );
        specs
    }
    fn from_specs<__S: ::edgepack_format::spec::AsSpec>(
        specs: &[__S],
    ) -> ::core::result::Result<Self, ::edgepack_format::spec::SpecErrors> {
        let mut reader = ::edgepack_format::spec::Reader::new(
            specs,
            ::core::option::Option::None,
        );
        let __option0 = reader.required::<u32>("MAX-VALUE");
        let __option1 = reader
            .optional::<bool>("fuse")
            .map(|value| value.unwrap_or_else(|| true));
        let __option2 = reader
            .optional::<String>("DEVICE")
            .map(|value| value.unwrap_or_else(|| ::core::convert::Into::into("cpu")));
        let __option3 = reader
            .optional::<Vec<f32>>("WEIGHTS")
            .map(|value| value.unwrap_or_else(|| ::core::default::Default::default()));
        let __option4 = reader.optional::<String>("CACHE-DIR");
        let options = || ::core::option::Option::Some(Options {
            max_value: __option0?,
            fused: __option1?,
            device: __option2?,
            weights: __option3?,
            cache_dir: __option4?,
            calls: ::core::default::Default::default(),
        });
        let options = options();
        reader.finish(options)
    }
}
