//! Summary of an Edge TPU package: every level, every list, with the places and sums of the tables stored inside as
//! bytes.

use std::collections::BTreeMap;

use edgepack::builder::content::hex;
use edgepack_format::darwinn::{
    AnyHint, Description, DmaHint, Executable, ExecutableRef, FieldOffset, InstructionBitstream, PackageRef, Position,
};
use edgepack_format::row::Rows;
use edgepack_format::wire;
use serde::Serialize;

use super::layers::LayerSummary;
use super::parts::{owned, sha256};
use crate::readable::sound_rows;

/// Every level of a package.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PackageSummary {
    /// Bytes of the package.
    length: usize,
    /// SHA-256 of the package.
    sha256: String,
    /// Identifier of the flatbuffer.
    file_identifier: String,
    /// Offset of the root table.
    root_table_offset: Option<u32>,
    /// Numbers of the fields that the root table has.
    field_ids_present: Option<Vec<u16>>,
    /// Oldest runtime that loads it.
    min_runtime_version: i32,
    /// Version of the key it is signed with.
    keypair_version: i32,
    /// Compiler that wrote it.
    compiler_version: Option<String>,
    /// Chip that it is bound to.
    virtual_chip_id: i32,
    /// Number of packages for other chips in it.
    multi_chip_package_count: usize,
    /// Packages for other chips.
    multi_chip_packages: Vec<PackageSummary>,
    /// Name that the compiler gave the model.
    model_identifier: Option<String>,
    /// Bytes of the signature.
    signature_length: usize,
    /// Table of all executables.
    serialized_multi_executable: MultiExecutableSummary,
    /// Number of executables.
    executable_count: usize,
    /// Executables.
    executables: Vec<ExecutableSummary>,
    /// Roles that the driver gives to executables.
    driver_view: DriverView,
}

/// Place and sum of the table of all executables.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct MultiExecutableSummary {
    /// Offset in the package.
    offset_in_package: Option<usize>,
    /// Bytes of the table.
    length: usize,
    /// SHA-256 of the table.
    sha256: String,
    /// Offset of the root table.
    root_table_offset: Option<u32>,
    /// Bytes 4 to 8 in hexadecimal digits.
    bytes_4_to_8_hex: String,
}

/// Roles that the driver gives to executables.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct DriverView {
    /// Index of the executable that computes.
    main_executable_index: Option<usize>,
    /// Index of the executable that loads parameters.
    parameter_caching_executable_index: Option<usize>,
}

/// Every list of an executable.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ExecutableSummary {
    /// Index of the executable.
    index: usize,
    /// Offset in the table of all executables.
    offset_in_multi_executable: usize,
    /// Bytes of the executable.
    length: usize,
    /// SHA-256 of the executable.
    sha256: String,
    /// Offset of the root table.
    root_table_offset: Option<u32>,
    /// Bytes 4 to 8 in hexadecimal digits.
    bytes_4_to_8_hex: String,
    /// Numbers of the fields that the root table has.
    field_ids_present: Option<Vec<u16>>,
    /// Version of the executable.
    version: i32,
    /// Name of the executable.
    name: Option<String>,
    /// Bytes of the model that it was compiled from.
    serialized_model_length: usize,
    /// Inferences in one run.
    batch_size: i32,
    /// Bytes of scratch memory.
    scratch_size_bytes: i32,
    /// Chip that it is for.
    chip: Option<String>,
    /// Number of its type.
    #[serde(rename = "type")]
    kind: i16,
    /// Name of its type.
    type_name: Option<&'static str>,
    /// Cycles that the compiler expects.
    estimated_cycles: i32,
    /// Cycles that the compiler expects, in the wider field.
    estimated_cycles_64bit: i64,
    /// Bytes of narrow memory that each tile uses.
    used_narrow_memory_bytes_per_tile: i32,
    /// Executables of one token share the parameters on the chip.
    parameter_caching_token: String,
    /// Parameters are in the memory of the device.
    use_tpu_dram_for_parameters: bool,
    /// Place of the parameters.
    parameters: Option<ParametersSummary>,
    /// Number of chunks of instructions.
    instruction_bitstream_count: usize,
    /// Bytes of instructions in all.
    instruction_bytes_total: usize,
    /// Fields to link in all chunks, by kind.
    field_offsets_by_description_total: BTreeMap<String, u64>,
    /// Chunks of instructions.
    instruction_bitstreams: Vec<ChunkSummary>,
    /// Transfers that the compiler expects.
    dma_hints: Option<HintsSummary>,
    /// Inputs.
    input_layers: Vec<LayerSummary>,
    /// Outputs.
    output_layers: Vec<LayerSummary>,
}

/// Place and sum of parameters.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ParametersSummary {
    /// Offset in the executable.
    offset_in_executable: usize,
    /// Bytes of the parameters.
    length: usize,
    /// SHA-256 of the parameters.
    sha256: String,
}

/// A chunk of instructions.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ChunkSummary {
    /// Bytes of the chunk.
    length: usize,
    /// SHA-256 of the chunk.
    sha256: String,
    /// Number of fields to link.
    field_offset_count: usize,
    /// Fields to link, by kind.
    field_offsets_by_description: BTreeMap<String, u64>,
    /// Fields to link.
    field_offsets: Vec<FieldSummary>,
}

/// A field of instructions that an address is written into.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct FieldSummary {
    /// First bit of the field.
    offset_bit: i32,
    /// Kind of the address.
    desc: Option<String>,
    /// Half of the address.
    position: Option<String>,
    /// Index in the batch.
    batch: Option<i32>,
    /// Name of the layer.
    name: Option<String>,
}

/// Transfers that the compiler expects.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct HintsSummary {
    /// Number of hints.
    count: usize,
    /// They are all there is, in this order.
    fully_deterministic: bool,
    /// Number of hints, by kind.
    by_kind: BTreeMap<&'static str, u64>,
    /// Hints in order.
    sequence: Vec<HintSummary>,
}

/// A transfer, an interrupt or a fence.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct HintSummary {
    /// Direction of the transfer.
    direction: String,
    #[serde(flatten)]
    what: HintKind,
}

/// Kind of a hint, with its facts.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum HintKind {
    /// A transfer of data.
    Dma {
        /// Kind of the address.
        desc: Option<String>,
        /// Name of the layer.
        name: Option<String>,
        /// Index in the batch.
        batch: Option<i32>,
        /// First byte.
        offset_in_bytes: i32,
        /// Bytes in all.
        size_in_bytes: i32,
    },
    /// A transfer of instructions.
    Instruction {
        /// Index of the chunk.
        chunk: i32,
    },
    /// An interrupt.
    Interrupt {
        /// Number of the interrupt.
        #[serde(rename = "type")]
        number: i16,
    },
    /// A fence.
    Fence,
    /// Nothing that is known.
    None,
}

impl HintKind {
    fn name(&self) -> &'static str {
        match self {
            HintKind::Dma { .. } => "dma",
            HintKind::Instruction { .. } => "instruction",
            HintKind::Interrupt { .. } => "interrupt",
            HintKind::Fence => "fence",
            HintKind::None => "none",
        }
    }
}

fn root(bytes: &[u8]) -> (Option<u32>, Option<Vec<u16>>) {
    let Ok(table) = wire::Table::root(bytes) else { return (None, None) };
    (Some(table.offset()), Some((0..table.slot_count()).filter(|slot| table.has(*slot)).collect()))
}

fn identifier(bytes: &[u8]) -> &[u8] {
    bytes.get(4..8).unwrap_or(&[])
}

/// Describes a package: every level and list, and where the tables stored as bytes are.
pub fn package(package: &PackageRef<'_>) -> PackageSummary {
    let (bytes, row) = (package.bytes(), package.package());
    let (root_table_offset, field_ids_present) = root(bytes);
    let multi = package.multi_executable_bytes();
    let start = package.multi_executable().map(|range| range.start);
    let executables = package.executables().iter().enumerate();
    let offset = |one: &ExecutableRef<'_>| one.offset().saturating_sub(start.unwrap_or(0));
    PackageSummary {
        length: bytes.len(),
        sha256: sha256(bytes),
        file_identifier: String::from_utf8_lossy(identifier(bytes)).into_owned(),
        root_table_offset,
        field_ids_present,
        min_runtime_version: row.min_runtime_version,
        keypair_version: row.keypair_version,
        compiler_version: owned(&row.compiler_version),
        virtual_chip_id: row.virtual_chip_id,
        multi_chip_package_count: row.multi_chip_package.as_ref().map_or(0, Rows::len),
        multi_chip_packages: package.chips().iter().map(self::package).collect(),
        model_identifier: owned(&row.model_identifier),
        signature_length: row.signature.as_ref().map_or(0, |blob| blob.as_slice().len()),
        serialized_multi_executable: MultiExecutableSummary {
            offset_in_package: start,
            length: multi.len(),
            sha256: sha256(multi),
            root_table_offset: root(multi).0,
            bytes_4_to_8_hex: hex(identifier(multi)),
        },
        executable_count: package.executables().len(),
        executables: executables.map(|(index, one)| executable(one, index, offset(one))).collect(),
        driver_view: DriverView {
            main_executable_index: package.main(),
            parameter_caching_executable_index: package.caching(),
        },
    }
}

fn executable(executable: &ExecutableRef<'_>, index: usize, offset: usize) -> ExecutableSummary {
    let (bytes, row) = (executable.bytes(), executable.row());
    let (root_table_offset, field_ids_present) = root(bytes);
    let place = wire::Table::root(bytes).and_then(|table| table.vector(Executable::PARAMETERS.index, 1)).ok().flatten();
    let chunks: Vec<ChunkSummary> = sound_rows(&row.instruction_bitstreams).iter().map(chunk).collect();
    let mut total = BTreeMap::new();
    for (kind, count) in chunks.iter().flat_map(|chunk| &chunk.field_offsets_by_description) {
        *total.entry(kind.clone()).or_insert(0) += count;
    }
    let layers = |rows, is_output| sound_rows(rows).iter().map(|row| LayerSummary::of(row, is_output)).collect();
    ExecutableSummary {
        index,
        offset_in_multi_executable: offset,
        length: bytes.len(),
        sha256: sha256(bytes),
        root_table_offset,
        bytes_4_to_8_hex: hex(identifier(bytes)),
        field_ids_present,
        version: row.version,
        name: owned(&row.name),
        serialized_model_length: row.serialized_model.as_ref().map_or(0, |blob| blob.as_slice().len()),
        batch_size: row.batch_size,
        scratch_size_bytes: row.scratch_size_bytes,
        chip: owned(&row.chip),
        kind: row.kind.0,
        type_name: row.kind.name(),
        estimated_cycles: row.estimated_cycles,
        estimated_cycles_64bit: row.estimated_cycles_64bit,
        used_narrow_memory_bytes_per_tile: row.used_narrow_memory_bytes_per_tile,
        parameter_caching_token: format!("{:#018x}", row.parameter_caching_token),
        use_tpu_dram_for_parameters: row.use_tpu_dram_for_parameters,
        parameters: place.map(|place| ParametersSummary {
            offset_in_executable: place.offset() as usize,
            length: place.len(),
            sha256: sha256(place.bytes()),
        }),
        instruction_bitstream_count: chunks.len(),
        instruction_bytes_total: chunks.iter().map(|chunk| chunk.length).sum(),
        field_offsets_by_description_total: total,
        instruction_bitstreams: chunks,
        dma_hints: hints(row),
        input_layers: layers(&row.input_layers, false),
        output_layers: layers(&row.output_layers, true),
    }
}

fn chunk(chunk: &InstructionBitstream<'_>) -> ChunkSummary {
    let fields = sound_rows(&chunk.field_offsets);
    let mut kinds = BTreeMap::new();
    for field in &fields {
        *kinds.entry(kind_of(field)).or_insert(0) += 1;
    }
    let bytes = chunk.bitstream.as_ref().map_or(&[][..], |blob| blob.as_slice());
    ChunkSummary {
        length: bytes.len(),
        sha256: sha256(bytes),
        field_offset_count: fields.len(),
        field_offsets_by_description: kinds,
        field_offsets: fields.iter().map(field).collect(),
    }
}

/// The name without what all of them begin with.
pub fn description(desc: Description) -> String {
    desc.to_string().trim_start_matches("BASE_ADDRESS_").to_owned()
}

fn kind_of(field: &FieldOffset<'_>) -> String {
    let meta = field.meta.as_ref();
    let (desc, position) = meta.map_or_else(Default::default, |meta| (meta.desc, meta.position));
    format!("{}/{}", description(desc), Position(position.0))
}

fn field(field: &FieldOffset<'_>) -> FieldSummary {
    let meta = field.meta.as_ref();
    FieldSummary {
        offset_bit: field.offset_bit,
        desc: meta.map(|meta| description(meta.desc)),
        position: meta.map(|meta| meta.position.to_string()),
        batch: meta.map(|meta| meta.batch),
        name: meta.and_then(|meta| owned(&meta.name)),
    }
}

fn hints(row: &Executable<'_>) -> Option<HintsSummary> {
    let hints = row.dma_hints.as_ref()?;
    let sequence: Vec<HintSummary> = sound_rows(&hints.hints).iter().map(hint).collect();
    let mut by_kind = BTreeMap::new();
    for hint in &sequence {
        *by_kind.entry(hint.what.name()).or_insert(0) += 1;
    }
    Some(HintsSummary { count: sequence.len(), fully_deterministic: hints.fully_deterministic, by_kind, sequence })
}

fn hint(hint: &DmaHint<'_>) -> HintSummary {
    let what = match &hint.any_hint {
        Some(AnyHint::DmaDescriptorHint(row)) => {
            let meta = row.meta.as_ref();
            HintKind::Dma {
                desc: meta.map(|meta| description(meta.desc)),
                name: meta.and_then(|meta| owned(&meta.name)),
                batch: meta.map(|meta| meta.batch),
                offset_in_bytes: row.offset_in_bytes,
                size_in_bytes: row.size_in_bytes,
            }
        }
        Some(AnyHint::InstructionHint(row)) => HintKind::Instruction { chunk: row.instruction_chunk_index },
        Some(AnyHint::InterruptHint(row)) => HintKind::Interrupt { number: row.kind.0 },
        Some(AnyHint::FenceHint(_)) => HintKind::Fence,
        _ => HintKind::None,
    };
    HintSummary { direction: hint.direction.to_string(), what }
}
