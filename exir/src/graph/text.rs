//! Graphs and programs as text, one line per node:
//!
//! ```text
//! %mul: f32[2, 3] = aten::mul.Tensor(self: %x, other: 2)
//! ```

use std::fmt::{self, Display, Write as _};

use edgepack_format::notation::{TensorType, ValueName};

use super::program::{InputKind, OutputKind};
use super::value::{Meta, Size, TensorMeta, Value, channels_last};
use super::{Argument, ExportedProgram, Graph, Node, expr};

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Known(number) => write!(f, "{number}"),
            Size::Symbolic(formula, _) => expr::infix(formula, f),
        }
    }
}

impl Display for TensorMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.is_channels_last() { channels_last(self.sizes.len()) } else { None };
        let order = order.unwrap_or_default();
        Display::fmt(&TensorType { element: self.scalar_type, sizes: &self.sizes, dim_order: &order }, f)
    }
}

impl Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meta::Tensor(meta) => Display::fmt(meta, f),
            Meta::Int(size) => write!(f, "int({size})"),
            Meta::Float(_) => f.write_str("float"),
            Meta::Bool(_) => f.write_str("bool"),
            Meta::Object(class) => write!(f, "object({class})"),
            Meta::Unknown => f.write_char('?'),
        }
    }
}

fn separated<T: Display>(f: &mut fmt::Formatter<'_>, items: impl IntoIterator<Item = T>) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// An argument of a graph, ready to be printed.
struct Shown<'g>(&'g Graph, &'g Argument);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(graph, argument) = self;
        match argument {
            Argument::None => f.write_str("None"),
            Argument::Value(id) => Display::fmt(&ValueName(graph.name(*id)), f),
            Argument::Int(number) => write!(f, "{number}"),
            Argument::Float(number) => write!(f, "{number:?}"),
            Argument::Bool(truth) => write!(f, "{truth}"),
            Argument::Text(text) => write!(f, "{text:?}"),
            Argument::Complex(number) => write!(f, "{:?}+{:?}j", number.real.0, number.imag.0),
            Argument::ScalarType(scalar_type) => Display::fmt(scalar_type, f),
            Argument::MemoryFormat(format) => write!(f, "{format:?}"),
            Argument::Layout(code) => write!(f, "layout {code}"),
            Argument::Device(device) => f.write_str(&device.kind),
            Argument::Operator(name) => f.write_str(name),
            Argument::Graph(name, _) => write!(f, "@{name}"),
            Argument::List(_, items) => {
                f.write_char('[')?;
                separated(f, items.iter().map(|item| Shown(graph, item)))?;
                f.write_char(']')
            }
            Argument::Map(map) => {
                f.write_char('{')?;
                for (index, (key, value)) in map.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{key:?}: {}", Shown(graph, value))?;
                }
                f.write_char('}')
            }
        }
    }
}

impl Graph {
    /// Returns an argument as listings show it: a value by its name, a literal, a list of these.
    pub fn argument_text(&self, argument: &Argument) -> String {
        Shown(self, argument).to_string()
    }

    fn write_value(&self, f: &mut fmt::Formatter<'_>, argument: &Argument) -> fmt::Result {
        write!(f, "{}", Shown(self, argument))?;
        match argument {
            Argument::Value(id) => {
                let meta = self.value(*id).map_or(&Meta::Unknown, |Value { meta, .. }| meta);
                write!(f, ": {meta}")
            }
            Argument::List(_, items) => {
                f.write_str(": [")?;
                let metas = items.iter().filter_map(|item| Some(&self.value(item.value()?)?.meta));
                separated(f, metas)?;
                f.write_char(']')
            }
            _ => Ok(()),
        }
    }

    fn write_node(&self, f: &mut fmt::Formatter<'_>, node: &Node, indent: usize) -> fmt::Result {
        write!(f, "{:indent$}", "")?;
        for (index, output) in node.outputs.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            self.write_value(f, output)?;
        }
        if !node.outputs.is_empty() {
            f.write_str(" = ")?;
        }
        write!(f, "{}(", node.target)?;
        for (index, input) in node.inputs.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let name = if input.name.is_empty() { String::new() } else { format!("{}: ", input.name) };
            write!(f, "{comma}{name}{}", Shown(self, &input.arg))?;
        }
        f.write_str(")\n")?;
        for input in &node.inputs {
            if let Argument::Graph(name, graph) = &input.arg {
                let inner = indent.saturating_add(2);
                writeln!(f, "{:inner$}@{name}:", "")?;
                graph.write_body(f, inner.saturating_add(2))?;
            }
        }
        Ok(())
    }

    fn write_body(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        for input in &self.inputs {
            write!(f, "{:indent$}input ", "")?;
            self.write_value(f, input)?;
            f.write_char('\n')?;
        }
        for node in &self.nodes {
            self.write_node(f, node, indent)?;
        }
        write!(f, "{:indent$}output ", "")?;
        separated(f, self.outputs.iter().map(|output| Shown(self, output)))?;
        f.write_char('\n')
    }
}

impl Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_body(f, 0)
    }
}

impl Display for ExportedProgram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}", self.dialect.name())?;
        for (name, range) in &self.ranges {
            let end = |end: Option<i64>| end.map_or("…".to_owned(), |end| end.to_string());
            writeln!(f, "  symbol {name} in {}..{}", end(range.min), end(range.max))?;
        }
        for spec in &self.inputs {
            f.write_str("  input ")?;
            self.graph.write_value(f, &spec.arg)?;
            match &spec.kind {
                InputKind::User => {}
                InputKind::Parameter(name) => write!(f, "  parameter {name}")?,
                InputKind::Buffer { name, persistent: true } => write!(f, "  buffer {name}")?,
                InputKind::Buffer { name, persistent: false } => write!(f, "  buffer {name}, not persistent")?,
                InputKind::Constant(name) => write!(f, "  constant {name}")?,
                InputKind::Literal(name) => write!(f, "  literal {name}")?,
                InputKind::Object(name) => write!(f, "  object {name}")?,
                InputKind::Token => f.write_str("  token")?,
            }
            f.write_char('\n')?;
        }
        for node in &self.graph.nodes {
            self.graph.write_node(f, node, 2)?;
        }
        for spec in &self.outputs {
            write!(f, "  output {}", Shown(&self.graph, &spec.arg))?;
            match &spec.kind {
                OutputKind::User => {}
                OutputKind::Loss => f.write_str("  loss")?,
                OutputKind::BufferMutation(name) => write!(f, "  new value of buffer {name}")?,
                OutputKind::ParameterMutation(name) => write!(f, "  new value of parameter {name}")?,
                OutputKind::InputMutation(name) => write!(f, "  new value of input {name}")?,
                OutputKind::GradientToParameter(name) => write!(f, "  gradient of {name}")?,
                OutputKind::GradientToInput(name) => write!(f, "  gradient of input {name}")?,
                OutputKind::Token => f.write_str("  token")?,
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}
