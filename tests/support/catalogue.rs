//! Abilities of the operator library, found by trying it: `docs/operators.md`.
//!
//! Every operator is called with its examples in every element type and in several dim orders. Invariant: the page says
//! what calls did, and a call in another dim order that succeeds has the elements of the contiguous one.

use std::collections::BTreeMap;
use std::fmt::Write;

use edgepack_executor::Registry;
use edgepack_executor::call::{Arg, OwnedTensor};
use edgepack_executor::kernel::Operator;
use edgepack_format::operators::Schema;
use edgepack_format::scalar::ScalarType;
use edgepack_kernels::{FAMILIES, Speed};

use crate::examples::{self, Answer, DTYPES, Example, close, dtype_name, ordered, schema_text};

/// Types that have one name on the page.
const GROUPS: &[(&str, &[&str])] = &[
    ("ints", &["u8", "i8", "i16", "i32", "i64"]),
    ("unsigned", &["u16", "u32", "u64"]),
    ("floats", &["f16", "bf16", "f32", "f64"]),
    ("complex", &["c32", "c64", "c128"]),
];

/// Operators whose results are what is in memory, in whatever order, or random.
pub const READS_MEMORY: [&str; 6] = [
    "aten::as_strided_copy.out",
    "aten::empty.out",
    "aten::rand.out",
    "aten::randn.out",
    "dim_order_ops::_empty_dim_order.out",
    "executorch_prim::et_view.default",
];

/// Dim orders that an operator takes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Layouts {
    /// Inputs and outputs in one order that is not contiguous.
    pub same: bool,
    /// Such inputs with contiguous outputs.
    pub inputs: bool,
    /// Contiguous inputs with such outputs.
    pub outputs: bool,
}

/// The dim order of rank `rank` that has the second dimension innermost.
pub fn channels_last(rank: usize) -> Vec<u8> {
    let mut order: Vec<u8> = (0..rank as u8).collect();
    if rank >= 2 {
        order.remove(1);
        order.push(1);
        if rank == 2 {
            order.swap(0, 1);
        }
    }
    order
}

/// The examples of every operator, by name.
pub fn by_name(examples: &[Example]) -> BTreeMap<&str, Vec<&Example>> {
    let mut map: BTreeMap<&str, Vec<&Example>> = BTreeMap::new();
    for example in examples {
        map.entry(&example.name).or_default().push(example);
    }
    map
}

/// The types an operator runs one of its examples with.
pub fn types(operator: &dyn Operator, examples: &[&Example]) -> Vec<ScalarType> {
    let text = schema_text(operator);
    let schema = Schema::parse(&text).expect("a schema");
    let runs = |example: &&&Example, dtype| {
        example.args(&schema, dtype).is_some_and(|args| example.call(operator, &schema, &args).is_ok())
    };
    let tried = DTYPES.iter().copied();
    tried.filter(|&dtype| examples.iter().any(|example| runs(&example, dtype))).collect()
}

fn rank(tensor: &OwnedTensor) -> usize {
    tensor.layout().sizes().len()
}

/// The greatest rank among tensors of a call.
fn greatest_rank(args: &[Arg]) -> usize {
    let ranks = args.iter().map(|arg| match arg {
        Arg::Tensor(tensor) => rank(tensor),
        Arg::Tensors(items) => items.iter().flatten().map(rank).max().unwrap_or(0),
        _ => 0,
    });
    ranks.max().unwrap_or(0)
}

/// The arguments with the tensors of the greatest rank in another dim order: inputs, outputs, or both. Factors and
/// statistics next to images keep theirs.
fn turned(schema: &Schema<'_>, args: &[Arg], inputs: bool, outputs: bool) -> Vec<Arg> {
    let greatest = greatest_rank(args);
    let turn = |tensor: &OwnedTensor| match rank(tensor) == greatest {
        true => ordered(tensor, &channels_last(greatest)),
        false => tensor.clone(),
    };
    let each = |(index, arg): (usize, &Arg)| match arg {
        arg if !(if schema.is_mutated(index) { outputs } else { inputs }) => arg.clone(),
        Arg::Tensor(tensor) => Arg::Tensor(turn(tensor)),
        Arg::Tensors(items) => Arg::Tensors(items.iter().map(|item| item.as_ref().map(turn)).collect()),
        other => other.clone(),
    };
    args.iter().enumerate().map(each).collect()
}

/// Returns whether two calls have the same results, but for the order in which sums were computed.
fn same(a: &Answer, b: &Answer) -> bool {
    match (a, b) {
        (Answer::Tensors(a), Answer::Tensors(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (a, b) => a == b,
    }
}

/// Finds the dim orders that an operator takes. An error names an example whose result depends on them.
pub fn layouts(operator: &dyn Operator, example: &Example, dtype: ScalarType) -> Result<Layouts, String> {
    let text = schema_text(operator);
    let schema = Schema::parse(&text).expect("a schema");
    let Some(args) = example.args(&schema, dtype) else { return Ok(Layouts::default()) };
    let Ok(plain) = example.call(operator, &schema, &args) else { return Ok(Layouts::default()) };
    if READS_MEMORY.contains(&&*example.name) {
        return Ok(Layouts::default());
    }
    let accepts = |inputs, outputs| match example.call(operator, &schema, &turned(&schema, &args, inputs, outputs)) {
        Err(_) => Ok(false),
        Ok(answer) if same(&answer, &plain) => Ok(true),
        Ok(answer) => Err(format!(
            "line {}: {} with {}, dim orders turned {inputs} {outputs}: {answer:?} is not {plain:?}",
            example.line,
            example.name,
            dtype_name(dtype)
        )),
    };
    Ok(Layouts { same: accepts(true, true)?, inputs: accepts(true, false)?, outputs: accepts(false, true)? })
}

fn shown_types(types: &[ScalarType]) -> String {
    let names: Vec<&str> = types.iter().map(|&dtype| dtype_name(dtype)).collect();
    let mut shown: Vec<&str> = names.iter().copied().filter(|name| *name == "bool").collect();
    for (group, members) in GROUPS {
        let have: Vec<&str> = members.iter().copied().filter(|member| names.contains(member)).collect();
        if have.len() == members.len() { shown.push(group) } else { shown.extend(have) }
    }
    if types.len() == DTYPES.len() { "all".into() } else { shown.join(" ") }
}

fn shown_layouts(layouts: Layouts) -> &'static str {
    match layouts {
        Layouts { same: true, inputs: true, outputs: true } => "any",
        Layouts { inputs: true, outputs: false, .. } => "any in, contiguous out",
        Layouts { same: true, .. } => "the same in and out",
        _ => "contiguous",
    }
}

fn has_matrix(example: &Example, schema: &Schema<'_>, dtype: ScalarType) -> bool {
    example.args(schema, dtype).is_some_and(|args| greatest_rank(&args) > 1)
}

/// The page. An error names operators whose result depends on the dim order.
pub fn page(registry: &Registry) -> Result<String, String> {
    let examples = examples::all();
    let named = by_name(&examples);
    let mut page = String::from(
        "# Operators\n\n\
         This page is made by calling every operator with the examples in `tests/data/operators/examples.txt`, in every element\n\
         type and in two dim orders; a test checks that it is fresh (`.ci/generate` writes it).\n\n\
         *Types* are those the example runs with: `ints` are u8 i8 i16 i32 i64, `unsigned` u16 u32 u64, `floats` f16 bf16\n\
         f32 f64, `complex` c32 c64 c128 (pairs of f16, f32, f64). 16-bit floats are computed as f32. *Layout* says which\n\
         dim orders inputs and outputs may have. The speed class follows the name of a family:\n\n",
    );
    for speed in Speed::ALL {
        let _ = writeln!(page, "- **{}**: {}", speed.name(), speed.meaning());
    }
    for family in FAMILIES {
        let _ = write!(page, "\n## {} ({})\n\n", family.name, family.speed.name());
        page += "| operator | types | layout |\n| --- | --- | --- |\n";
        let mut kernels: Vec<_> = family.tables.iter().flat_map(|table| table.iter()).collect();
        kernels.sort_by_key(|kernel| kernel.name);
        for kernel in kernels {
            let operator = registry.find(kernel.name).ok_or_else(|| format!("{} is not registered", kernel.name))?;
            let text = schema_text(operator);
            let schema = Schema::parse(&text).expect("a schema");
            let examples = named.get(kernel.name).map_or(&[][..], Vec::as_slice);
            let types = types(operator, examples);
            let dtype = types.iter().copied().find(|&dtype| dtype == ScalarType::FLOAT).or(types.first().copied());
            let with_matrix = examples.iter().find(|example| has_matrix(example, &schema, ScalarType::FLOAT));
            let layout = match (with_matrix, dtype) {
                (Some(example), Some(dtype)) => shown_layouts(layouts(operator, example, dtype)?),
                _ => "–",
            };
            let open = examples.iter().any(|example| example.is_open());
            let types = if open { shown_types(&types) } else { "numbers".into() };
            let _ = writeln!(page, "| `{text}` | {types} | {layout} |");
        }
    }
    page += REMARKS;
    Ok(page)
}

/// Remarks at the end of the page, on what the tables do not say.
const REMARKS: &str = "
## Recorded cases that do not pass

Of ExecuTorch's operator suite one program is left: `masked_select.float32.3` plans room for 100 elements, and 490 are
selected. A program's bound is kept, so the call fails and says both numbers.

## Where results are PyTorch's and not the stock runtime's

`reference_registry` has the stock arithmetic of integer division and remainder. Beside that, 713 programs recorded on the
stock runtime, over all element types an operator takes there, give the same but for ten: sums of 16-bit floats (products,
convolution, `cumsum`, batch norm), which are kept in 32 bits here and rounded once; pooling of NaN, which stays NaN;
bilinear resizing of bytes, rounded as in PyTorch; and a negative power of an integer 0, which has no value.
";
