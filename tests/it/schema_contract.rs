//! Holds `edgepack-format` and the schemas together: every table, field, id, type, default, alignment, union tag and
//! enum number is the same on both sides, and nothing is on one side only.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::row::{FieldKind, ScalarKind, StructDesc, Table, TableDesc, UnionDesc};
use edgepack_format::{bundle, darwinn, ptd, pte, scalar, tflite, trace, xnnpack};
use edgepack_tests::schema_gen::{FILES, declarations, generate, generated_path, schema_path};
use planus_types::ast::{FloatType, IntegerType};
use planus_types::intermediate::{
    AbsolutePath, AssignMode, DeclarationIndex, DeclarationKind, Declarations, FloatLiteral, IntegerLiteral, Literal,
    SimpleType, TableFieldTagKind, TypeKind,
};

/// Namespace, root table and file identifier of every format.
fn roots() -> [(&'static str, &'static TableDesc, [u8; 4]); 9] {
    [
        ("program", pte::Program::DESC, pte::IDENTIFIER),
        ("flat_tensor", ptd::FlatTensor::DESC, ptd::IDENTIFIER),
        ("flat_tensor_legacy", ptd::LegacyFlatTensor::DESC, ptd::IDENTIFIER),
        ("flat_data", ptd::FlatData::DESC, ptd::FLAT_DATA_IDENTIFIER),
        ("bundled_program", bundle::BundledProgram::DESC, bundle::IDENTIFIER),
        ("etdump", trace::ETDump::DESC, trace::IDENTIFIER),
        ("darwinn", darwinn::Package::DESC, darwinn::IDENTIFIER),
        ("tflite", tflite::Model::DESC, tflite::IDENTIFIER),
        ("xnnpack", xnnpack::Graph::DESC, xnnpack::IDENTIFIER),
    ]
}

/// One comparison: what was visited, and every difference.
struct Contract<'d> {
    schema: &'d Declarations,
    namespace: &'static str,
    visited: BTreeSet<usize>,
    differences: Vec<String>,
}

impl Contract<'_> {
    fn differ(&mut self, what: String) {
        self.differences.push(format!("{}: {what}", self.namespace));
    }

    fn find(&mut self, name: &str) -> Option<DeclarationIndex> {
        let path = AbsolutePath(vec![self.namespace.into(), name.into()]);
        let found = self.schema.declarations.get_index_of(&path).map(DeclarationIndex);
        if found.is_none() {
            self.differ(format!("{name} is not in the schema"));
        }
        found
    }

    fn table(&mut self, desc: &'static TableDesc) {
        let Some(index) = self.find(desc.name) else { return };
        if !self.visited.insert(index.0) {
            return;
        }
        let schema = self.schema;
        let DeclarationKind::Table(table) = &schema.get_declaration(index).1.kind else {
            return self.differ(format!("{} is not a table in the schema", desc.name));
        };
        let ours: BTreeMap<_, _> = desc.fields.iter().map(|field| (field.name, field)).collect();
        assert_eq!(ours.len(), desc.fields.len(), "{}: two fields of one name", desc.name);
        for name in table.fields.keys().filter(|name| !ours.contains_key(name.as_str())) {
            self.differ(format!("{}.{name} is only in the schema", desc.name));
        }
        for field in desc.fields {
            let at = format!("{}.{}", desc.name, field.name);
            let Some(theirs) = table.fields.get(field.name) else {
                self.differ(format!("{at} is not in the schema"));
                continue;
            };
            let tagged = matches!(theirs.object_tag_kind, TableFieldTagKind::UnionTag);
            if theirs.vtable_index != u32::from(field.slot) {
                self.differ(format!("{at} has slot {}, in the schema {}", field.slot, theirs.vtable_index));
            }
            if tagged != matches!(field.kind, FieldKind::Union(_)) {
                self.differ(format!("{at} is a union on one side only"));
            }
            let align = theirs.forced_alignment.as_ref().map_or(1, |(align, _)| *align as usize);
            if field.align != align {
                self.differ(format!("{at} is aligned to {}, in the schema to {align}", field.align));
            }
            match (&theirs.assign_mode, default_bytes(&theirs.assign_mode)) {
                (AssignMode::Optional, _) if !matches!(field.kind, FieldKind::Scalar(_)) => {}
                (_, Some(default)) if field.default.starts_with(&default) => {}
                (mode, _) => self.differ(format!("{at} has default {:?}, in the schema {mode:?}", field.default)),
            }
            self.kind(&at, field.kind, &theirs.type_.kind);
        }
    }

    fn kind(&mut self, at: &str, ours: FieldKind, theirs: &TypeKind) {
        let same = match (ours, theirs) {
            (FieldKind::Scalar(kind), TypeKind::SimpleType(simple)) => self.scalar(*simple) == Some(kind),
            (FieldKind::Text, TypeKind::String) => true,
            (FieldKind::Scalars(kind), TypeKind::Vector(item)) => match item.kind {
                TypeKind::SimpleType(simple) => self.scalar(simple) == Some(kind),
                _ => false,
            },
            (FieldKind::Blob, TypeKind::Vector(item)) => {
                item.kind == TypeKind::SimpleType(SimpleType::Integer(IntegerType::U8))
            }
            (FieldKind::Blobs, TypeKind::Vector(item)) => item.kind == TypeKind::String,
            (FieldKind::Structs(desc), TypeKind::Vector(item)) => match item.kind {
                TypeKind::SimpleType(SimpleType::Struct(index)) => self.same_struct(desc, index),
                _ => false,
            },
            (FieldKind::Table(desc), TypeKind::Table(index)) => self.same_table(desc, *index),
            (FieldKind::Rows(desc), TypeKind::Vector(item)) => match item.kind {
                TypeKind::Table(index) => self.same_table(desc, index),
                _ => false,
            },
            (FieldKind::Union(desc), TypeKind::Union(index)) => self.same_union(desc, *index),
            _ => false,
        };
        if !same {
            let theirs = self.schema.format_type_kind(theirs);
            self.differ(format!("{at} is {}, in the schema {theirs}", describe(ours)));
        }
    }

    fn scalar(&mut self, simple: SimpleType) -> Option<ScalarKind> {
        match simple {
            SimpleType::Bool => Some(ScalarKind::Bool),
            SimpleType::Integer(integer) => Some(integer_kind(integer)),
            SimpleType::Float(FloatType::F32) => Some(ScalarKind::F32),
            SimpleType::Float(FloatType::F64) => Some(ScalarKind::F64),
            SimpleType::Enum(index) => {
                self.visited.insert(index.0);
                match &self.schema.get_declaration(index).1.kind {
                    DeclarationKind::Enum(declared) => Some(integer_kind(declared.type_)),
                    _ => None,
                }
            }
            SimpleType::Struct(_) => None,
        }
    }

    fn same_table(&mut self, desc: &'static TableDesc, theirs: DeclarationIndex) -> bool {
        self.table(desc);
        self.find(desc.name).is_some_and(|ours| ours == theirs)
    }

    fn same_struct(&mut self, desc: &'static StructDesc, theirs: DeclarationIndex) -> bool {
        self.visited.insert(theirs.0);
        let DeclarationKind::Struct(declared) = &self.schema.get_declaration(theirs).1.kind else { return false };
        let fields: Vec<_> =
            declared.fields.iter().map(|(name, field)| (name.as_str(), self.scalar(field.type_))).collect();
        let ours: Vec<_> = desc.fields.iter().map(|(name, kind)| (*name, Some(*kind))).collect();
        let size = (declared.size as usize, declared.alignment as usize);
        self.find(desc.name) == Some(theirs) && fields == ours && size == (desc.size, desc.align)
    }

    fn same_union(&mut self, desc: &'static UnionDesc, theirs: DeclarationIndex) -> bool {
        self.visited.insert(theirs.0);
        let schema = self.schema;
        let DeclarationKind::Union(union) = &schema.get_declaration(theirs).1.kind else { return false };
        let mut same = self.find(desc.name) == Some(theirs) && union.variants.len() == desc.variants.len();
        for ((name, variant), (position, ours)) in union.variants.iter().zip(desc.variants.iter().enumerate()) {
            let (tag, our_name, table) = *ours;
            same &= usize::from(tag) == position + 1 && name == our_name;
            same &= matches!(variant.type_.kind, TypeKind::Table(index) if self.same_table(table, index));
        }
        same
    }
}

fn describe(kind: FieldKind) -> String {
    match kind {
        FieldKind::Table(desc) => format!("table {}", desc.name),
        FieldKind::Rows(desc) => format!("[{}]", desc.name),
        FieldKind::Union(desc) => format!("union {}", desc.name),
        other => format!("{other:?}"),
    }
}

fn integer_kind(integer: IntegerType) -> ScalarKind {
    match integer {
        IntegerType::U8 => ScalarKind::U8,
        IntegerType::U16 => ScalarKind::U16,
        IntegerType::U32 => ScalarKind::U32,
        IntegerType::U64 => ScalarKind::U64,
        IntegerType::I8 => ScalarKind::I8,
        IntegerType::I16 => ScalarKind::I16,
        IntegerType::I32 => ScalarKind::I32,
        IntegerType::I64 => ScalarKind::I64,
    }
}

/// Bytes of a default as they are on the wire.
fn default_bytes(mode: &AssignMode) -> Option<Vec<u8>> {
    let AssignMode::HasDefault(literal) = mode else { return None };
    match literal {
        Literal::Bool(value) => Some(vec![u8::from(*value)]),
        Literal::Int(value) | Literal::EnumTag { value, .. } => Some(integer_bytes(value)),
        Literal::Float(FloatLiteral::F32(value)) => Some(value.to_le_bytes().to_vec()),
        Literal::Float(FloatLiteral::F64(value)) => Some(value.to_le_bytes().to_vec()),
        Literal::String(_) | Literal::Array(_) | Literal::Vector(_) => None,
    }
}

fn integer_bytes(value: &IntegerLiteral) -> Vec<u8> {
    match *value {
        IntegerLiteral::U8(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::I8(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::U16(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::I16(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::U32(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::I32(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::U64(value) => value.to_le_bytes().to_vec(),
        IntegerLiteral::I64(value) => value.to_le_bytes().to_vec(),
    }
}

#[test]
fn tables_agree_with_the_schemas() {
    let schema = declarations();
    let mut visited = BTreeSet::new();
    let mut differences = Vec::new();
    for (namespace, root, _) in roots() {
        let mut contract = Contract { schema: &schema, namespace, visited: BTreeSet::new(), differences: Vec::new() };
        contract.table(root);
        // Tables that are stored inside as bytes are of no table's type.
        if namespace == "darwinn" {
            contract.table(darwinn::MultiExecutable::DESC);
            contract.table(darwinn::Executable::DESC);
        }
        visited.extend(contract.visited);
        differences.extend(contract.differences);
    }
    for (index, path, _) in schema.iter_declarations() {
        // `etdump` declares two tables that nothing refers to, for the sake of names.
        let referred = !schema.parents[index.0].is_empty();
        if referred && !visited.contains(&index.0) {
            differences.push(format!("{path} is only in the schema"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(visited.len() > 60, "the walk reached only {} declarations", visited.len());
}

/// The numbers and names of an open enum of ours, under its path in the schemas.
macro_rules! enums {
    ($($path:literal => $ty:ty),* $(,)?) => {
        BTreeMap::from([$((
            $path,
            <$ty>::NAMED.iter().map(|(name, value)| (i64::from(value.0), *name)).collect::<BTreeMap<_, _>>(),
        )),*])
    };
}

#[test]
fn enums_agree_with_the_schemas() {
    let ours = enums! {
        "scalar_type.ScalarType" => scalar::ScalarType,
        "program.TensorShapeDynamism" => pte::TensorShapeDynamism,
        "program.TensorDataLocation" => pte::TensorDataLocation,
        "program.DeviceType" => pte::DeviceType,
        "program.DataLocation" => pte::DataLocation,
        "etdump.ValueType" => trace::ValueType,
        "darwinn.Description" => darwinn::Description,
        "darwinn.Position" => darwinn::Position,
        "darwinn.InterruptType" => darwinn::InterruptType,
        "darwinn.Direction" => darwinn::Direction,
        "darwinn.DataType" => darwinn::DataType,
        "darwinn.ExecutableType" => darwinn::ExecutableType,
        "tflite.TensorType" => tflite::TensorType,
        "xnnpack.Datatype" => xnnpack::Datatype,
    };
    let mut found = 0;
    for (_, path, declaration) in declarations().iter_declarations() {
        let DeclarationKind::Enum(declared) = &declaration.kind else { continue };
        let ours = &ours[path.to_string().as_str()];
        // In Rust, words of a name are set apart.
        let ours: Vec<_> = ours.iter().map(|(value, name)| (*value, name.replace('_', ""))).collect();
        let theirs: Vec<_> = declared
            .variants
            .iter()
            .map(|(value, variant)| (value.to_u64() as i64, variant.name.replace('_', "")))
            .collect();
        assert_eq!(ours, theirs, "{path}");
        found += 1;
    }
    assert_eq!(found, ours.len());
}

#[test]
fn identifiers_agree_with_the_schemas() {
    for (file, root, identifier) in roots() {
        let text = std::fs::read_to_string(schema_path(file)).expect("a schema file");
        assert!(text.contains(&format!("\nnamespace {file};\n")), "{file}: namespace");
        let identifier = identifier.escape_ascii();
        assert!(text.contains(&format!("\nfile_identifier \"{identifier}\";\n")), "{file}: {identifier}");
        assert!(text.ends_with(&format!("\nroot_type {};\n", root.name)), "{file}: root type");
    }
    assert_eq!(roots().len() + 1, FILES.len(), "every schema file but the shared one has a root");
}

#[test]
fn generated_code_is_fresh() {
    let fresh = generate();
    let path = generated_path();
    if std::env::var_os("EDGEPACK_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the generated file is writable");
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let line = fresh.lines().zip(checked_in.lines()).position(|(fresh, old)| fresh != old);
    assert!(fresh == checked_in, "{} is stale (line {line:?}); .ci/generate writes it", path.display());
}
