//! A program under construction: what its methods share.

use std::collections::BTreeMap;

use edgepack_format::operators::{Schema, lookup};
use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};
use edgepack_format::tensor::{TensorLayout, TensorView};

use super::args::{ConstantId, Owner};
use super::parts::Method;
use super::values::check_sizes;
use crate::buffer::MAX_ALIGNMENT;
use crate::build_error::{BuildError, MAX_SEGMENT_ALIGNMENT, check_alignment};
use crate::content::Data;
use crate::named_data::{NamedDataStore, check_tag};
use crate::plan::{self, Strategy};
use crate::pool::Pool;

/// Builds a `.pte` file and the data files that belong to it.
///
/// The module's [page](super) has examples. Contents may be borrowed for as long as `'d`; they are read when the file is
/// written, and when two of a length have to be told apart.
///
/// ```
/// use edgepack_builder::args;
/// use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
/// use edgepack_format::{scalar::ScalarType, tensor::TensorView};
///
/// let bias = TensorView::from_slice(&[2], &[1.0f32, 2.0])?;
/// let mut program = ProgramBuilder::new();
/// let bias = program.constant("bias", &bias.untyped())?; // equal bytes are stored once
/// let mut forward = program.method("forward");
/// let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2]))?;
/// let y = forward.call("aten::add.out", args![x, bias, 1i64], TensorSpec::like(x))?;
/// forward.output(y)?;
/// let file = program.finish()?.to_bytes()?; // memory planned, file verified
/// assert_eq!(&file[4..8], b"ET12");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ProgramBuilder<'d> {
    pub(crate) owner: Owner,
    pub(crate) constants: Vec<Constant>,
    constant_names: BTreeMap<String, usize>,
    pub(crate) buffers: Pool<'d>,
    /// Initial values, by list.
    pub(crate) initial: BTreeMap<u64, Pool<'d>>,
    pub(crate) payloads: Pool<'d>,
    pub(crate) inline_payloads: Pool<'d>,
    pub(crate) named: NamedDataStore<'d>,
    pub(crate) methods: Vec<Method>,
    pub(crate) getters: Vec<Method>,
    pub(crate) schemas: BTreeMap<String, String>,
    pub(crate) options: Options,
}

/// A constant of the program.
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) layout: TensorLayout,
    /// Its data among the buffers; `None` for one in a data file.
    pub(crate) buffer: Option<usize>,
}

/// Layout options of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) segment_alignment: u64,
    pub(crate) tensor_alignment: u64,
    pub(crate) delegate_alignment: u64,
    pub(crate) memory_alignment: u64,
    pub(crate) inline_delegates: bool,
    pub(crate) inline_constants: bool,
    pub(crate) strategy: Strategy,
}

impl Default for ProgramBuilder<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'d> ProgramBuilder<'d> {
    /// A program without methods, laid out as the reference exporter does.
    pub fn new() -> Self {
        ProgramBuilder {
            owner: Owner::next(),
            constants: Vec::new(),
            constant_names: BTreeMap::new(),
            buffers: Pool::default(),
            initial: BTreeMap::new(),
            payloads: Pool::default(),
            inline_payloads: Pool::default(),
            named: NamedDataStore::new(),
            methods: Vec::new(),
            getters: Vec::new(),
            schemas: BTreeMap::new(),
            options: Options {
                segment_alignment: 128,
                tensor_alignment: 16,
                delegate_alignment: 16,
                memory_alignment: plan::ALIGNMENT,
                inline_delegates: false,
                inline_constants: false,
                strategy: Strategy::Smallest,
            },
        }
    }

    pub(crate) fn check_name_is_new(&self, name: &str) -> Result<(), BuildError> {
        let conflict = |first: &str| BuildError::Conflict {
            what: "the method name",
            name: name.to_owned(),
            first: first.to_owned(),
            second: "that of another method".to_owned(),
        };
        match self.methods.iter().chain(&self.getters).any(|method| method.name == name) {
            true => Err(conflict("that of a method")),
            false => Ok(()),
        }
    }

    /// Adds a constant; equal bytes are stored once. The same name again must stand for the same tensor.
    pub fn constant(&mut self, name: &str, tensor: &TensorView<'d>) -> Result<ConstantId, BuildError> {
        self.constant_from(name, tensor.layout().clone(), tensor.data())
    }

    /// Adds a constant whose bytes come from anywhere.
    pub fn constant_from(
        &mut self,
        name: &str,
        layout: TensorLayout,
        data: impl Into<Data<'d>>,
    ) -> Result<ConstantId, BuildError> {
        let data = data.into();
        check_content(name, &layout, &data)?;
        let buffer = self.buffers.intern(data).map_err(BuildError::reading(format!("constant `{name}`")))?;
        self.add_constant(Constant { name: name.to_owned(), layout, buffer: Some(buffer) })
    }

    /// Adds a constant that goes to the data file of this tag, where its name is the key.
    pub fn external_constant(
        &mut self,
        name: &str,
        tensor: &TensorView<'d>,
        tag: &str,
    ) -> Result<ConstantId, BuildError> {
        self.external_constant_from(name, tensor.layout().clone(), tensor.data(), tag)
    }

    /// The same with bytes from anywhere.
    pub fn external_constant_from(
        &mut self,
        name: &str,
        layout: TensorLayout,
        data: impl Into<Data<'d>>,
        tag: &str,
    ) -> Result<ConstantId, BuildError> {
        let data = data.into();
        check_content(name, &layout, &data)?;
        self.check_constant(name, &layout, None)?;
        self.named.add_with_layout(name, data, layout.clone(), self.options.tensor_alignment, Some(tag))?;
        self.add_constant(Constant { name: name.to_owned(), layout, buffer: None })
    }

    fn check_constant(&self, name: &str, layout: &TensorLayout, buffer: Option<usize>) -> Result<(), BuildError> {
        let Some(known) = self.constant_names.get(name).and_then(|&index| self.constants.get(index)) else {
            return Ok(());
        };
        if known.layout == *layout && known.buffer == buffer {
            return Ok(());
        }
        let show = |layout: &TensorLayout, buffer: Option<usize>| match buffer {
            Some(buffer) => format!("{layout} with bytes {buffer}"),
            None => format!("{layout} in a data file"),
        };
        Err(BuildError::Conflict {
            what: "the constant",
            name: name.to_owned(),
            first: show(&known.layout, known.buffer),
            second: show(layout, buffer),
        })
    }

    fn add_constant(&mut self, constant: Constant) -> Result<ConstantId, BuildError> {
        self.check_constant(&constant.name, &constant.layout, constant.buffer)?;
        if let Some(&index) = self.constant_names.get(&constant.name) {
            return Ok(ConstantId { owner: self.owner, index });
        }
        let index = self.constants.len();
        self.constant_names.insert(constant.name.clone(), index);
        self.constants.push(constant);
        Ok(ConstantId { owner: self.owner, index })
    }

    /// Adds data that backends find by key, into the program or, with a tag, into a data file.
    pub fn named_data(
        &mut self,
        key: &str,
        data: impl Into<Data<'d>>,
        alignment: u64,
        external: Option<&str>,
    ) -> Result<(), BuildError> {
        self.named.add(key, data, alignment, external)
    }

    /// Adds a setting that whoever runs the program can read: `tokenizer.bos_id`, 128000. A name is one thing.
    ///
    /// ```
    /// use edgepack_builder::pte::ProgramBuilder;
    ///
    /// let mut program = ProgramBuilder::new();
    /// program.metadata("tokenizer.model", "bpe")?;
    /// program.metadata("tokenizer.eos_ids", vec![128_001, 128_009])?;
    /// assert!(program.metadata("tokenizer.model", "sentencepiece").is_err());
    /// # Ok::<(), edgepack_builder::BuildError>(())
    /// ```
    pub fn metadata(&mut self, name: &str, value: impl Into<MetadataValue>) -> Result<(), BuildError> {
        self.named.add(&format!("{METADATA_PREFIX}{name}"), value.into().encode(), 1, None)
    }

    /// Takes in what a backend put into a store of its own.
    pub fn merge_named_data(&mut self, store: NamedDataStore<'d>) -> Result<(), BuildError> {
        self.named.merge(store)
    }

    /// Makes an operator known by its schema, so that calls of it can name it.
    pub fn operator(&mut self, schema: &str) -> Result<(), BuildError> {
        let parsed = Schema::parse(schema).map_err(|source| BuildError::Schema { text: schema.to_owned(), source })?;
        let name = parsed.full_name();
        let known = self.schemas.get(name).map(String::as_str).or_else(|| lookup(name));
        if let Some(known) = known.filter(|known| Schema::parse(known).as_ref() != Ok(&parsed)) {
            return Err(BuildError::Conflict {
                what: "the operator",
                name: name.to_owned(),
                first: known.to_owned(),
                second: schema.to_owned(),
            });
        }
        self.schemas.insert(name.to_owned(), schema.to_owned());
        Ok(())
    }

    /// Starts segments at multiples of `align` (128 unless said otherwise): any number up to [`MAX_SEGMENT_ALIGNMENT`].
    pub fn segment_alignment(&mut self, align: u64) -> Result<&mut Self, BuildError> {
        self.options.segment_alignment = check_alignment("segments", align)?;
        Ok(self)
    }

    /// Starts constants at multiples of `align` (16 unless said otherwise): a power of two up to 64 KiB.
    pub fn tensor_alignment(&mut self, align: u64) -> Result<&mut Self, BuildError> {
        self.options.tensor_alignment = power_of_two("constants", align, 1)?;
        Ok(self)
    }

    /// Starts delegate payloads inside the flatbuffer at multiples of `align` (16 unless said otherwise): a power of two
    /// up to 64 KiB.
    pub fn delegate_alignment(&mut self, align: u64) -> Result<&mut Self, BuildError> {
        self.options.delegate_alignment = power_of_two("delegate payloads", align, 1)?;
        Ok(self)
    }

    /// Plans memory in multiples of `align` (16 unless said otherwise): a power of two from 16 to 64 KiB.
    pub fn memory_alignment(&mut self, align: u64) -> Result<&mut Self, BuildError> {
        self.options.memory_alignment = power_of_two("planned memory", align, plan::ALIGNMENT)?;
        Ok(self)
    }

    /// Sets the strategy of the memory planner.
    pub fn strategy(&mut self, strategy: Strategy) -> &mut Self {
        self.options.strategy = strategy;
        self
    }

    /// Keeps delegate payloads inside the flatbuffer instead of in segments, from the next one on.
    pub fn inline_delegates(&mut self, inline: bool) -> &mut Self {
        self.options.inline_delegates = inline;
        self
    }

    /// Keeps constants inside the flatbuffer, as exporters before September 2024 did. Stock runtimes refuse such files.
    pub fn inline_constants(&mut self, inline: bool) -> &mut Self {
        self.options.inline_constants = inline;
        self
    }

    pub(crate) fn external_initial(
        &mut self,
        name: &str,
        layout: &TensorLayout,
        data: Data<'d>,
        tag: &str,
    ) -> Result<(), BuildError> {
        check_tag(tag)?;
        check_content(name, layout, &data)?;
        self.named.add_with_layout(name, data, layout.clone(), self.options.tensor_alignment, Some(tag))
    }
}

/// A tensor is as long as its bytes, and its sizes are ones a file can hold.
pub(crate) fn check_content(name: &str, layout: &TensorLayout, data: &Data<'_>) -> Result<(), BuildError> {
    let (have, want) = (data.len(), layout.byte_len() as u64);
    let place = format!("tensor `{name}`");
    check_sizes(&place, layout)?;
    if name.is_empty() {
        return Err(BuildError::Name { what: "a tensor", name: String::new(), why: "it is empty" });
    }
    if have != want {
        return Err(BuildError::Length { place, have, want });
    }
    Ok(())
}

fn power_of_two(place: &str, align: u64, least: u64) -> Result<u64, BuildError> {
    if align.is_power_of_two() && (least..=MAX_ALIGNMENT as u64).contains(&align) {
        return Ok(align);
    }
    let want = format!("a power of two from {least} to {MAX_ALIGNMENT}");
    Err(BuildError::Alignment { place: place.to_owned(), align, want })
}

// Anything a segment may be aligned to, its contents may be.
const _: () = assert!(MAX_ALIGNMENT as u64 <= MAX_SEGMENT_ALIGNMENT);
