//! The build list of a runtime that has the operators of some programs and no others, as ExecuTorch's builds read it
//! (`selected_operators.yaml`): operators, and for each the element types and dim orders that its calls have.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::pte::{EValue, InstructionArguments, KernelTypes};

use super::open::Opened;
use super::tables;
use super::values::operator_name;
use crate::status::Failure;
use crate::{readable, spelling};

/// Operators of programs, to be built into a runtime.
#[derive(Default)]
pub struct Selection {
    operators: BTreeMap<String, Operator>,
    /// Backends of delegates, which such a list does not hold.
    backends: BTreeSet<String>,
}

#[derive(Default)]
struct Operator {
    /// Files that call it.
    files: BTreeSet<String>,
    /// Types of the tensors of its calls, each as a key of the runtime's registry.
    kernels: BTreeSet<String>,
}

impl Selection {
    /// Adds the operators of all methods of a program.
    pub fn add(&mut self, opened: &Opened, file: &str) -> Result<(), Failure> {
        for plan in opened.program.view()?.plans().iter() {
            let plan = plan?;
            let names: Vec<String> = readable::sound_rows(&plan.operators).iter().map(operator_name).collect();
            for name in &names {
                self.operators.entry(name.clone()).or_default().files.insert(file.to_owned());
            }
            let ids = readable::rows(&plan.delegates).into_iter().filter_map(|delegate| delegate?.id);
            self.backends.extend(ids.map(|id| spelling::name(&id)));
            let values = readable::rows(&plan.values);
            for chain in tables::chains(&plan) {
                for instruction in readable::rows(&chain.instructions).into_iter().flatten() {
                    let Some(InstructionArguments::KernelCall(call)) = instruction.instr_args else { continue };
                    let name = usize::try_from(call.op_index).ok().and_then(|index| names.get(index));
                    let Some(operator) = name.and_then(|name| self.operators.get_mut(name)) else { continue };
                    let args = call.args.iter().flat_map(|args| args.iter());
                    let parts: Vec<String> = args.filter_map(|id| part(&values, id)).collect();
                    operator.kernels.insert(format!("v1/{}", parts.join("|")));
                }
            }
        }
        Ok(())
    }

    /// Backends of the programs' delegates, which have to be built in next to the list; `None` if there are none.
    pub fn backends(&self) -> Option<String> {
        let names: Vec<&str> = self.backends.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The list as YAML, in the order of names.
    pub fn yaml(&self) -> String {
        let empty = if self.operators.is_empty() { " {}" } else { "" };
        let mut out = format!("build_features: []\ncustom_classes: []\net_kernel_metadata:{empty}\n");
        for (name, operator) in &self.operators {
            let none = if operator.kernels.is_empty() { " []" } else { "" };
            out += &format!("  {}:{none}\n", scalar(name));
            operator.kernels.iter().for_each(|kernel| out += &format!("  - {kernel}\n"));
        }
        out += "include_all_non_op_selectives: false\ninclude_all_operators: false\nkernel_metadata: {}\n";
        out += &format!("operators:{empty}\n");
        for (name, operator) in &self.operators {
            out += &format!("  {}:\n    debug_info:\n", scalar(name));
            operator.files.iter().for_each(|file| out += &format!("    - {}\n", scalar(file)));
            out += "    include_all_overloads: false\n    is_root_operator: true\n    is_used_for_training: true\n";
        }
        out
    }
}

/// The type of a tensor argument, that of the first tensor for a list: `6;0,1`. `None` for other arguments.
fn part(values: &[Option<EValue<'_>>], id: i32) -> Option<String> {
    let value = |id: i32| values.get(usize::try_from(id).ok()?)?.as_ref()?.val.as_ref();
    let first = |items: Vec<i32>| items.into_iter().find(|&item| item >= 0).and_then(value);
    let tensor = match value(id)? {
        KernelTypes::TensorList(list) => first(list.items.iter().flat_map(|items| items.iter()).collect()),
        KernelTypes::OptionalTensorList(list) => first(list.items.iter().flat_map(|items| items.iter()).collect()),
        value => Some(value),
    };
    let Some(KernelTypes::Tensor(tensor)) = tensor else { return None };
    let order = tensor.dim_order.iter().flat_map(|order| order.iter());
    let order: Vec<String> = order.map(|dim| dim.to_string()).collect();
    Some(format!("{};{}", tensor.scalar_type.0, order.join(",")))
}

/// Text of the file as YAML: plain where it cannot be anything else, quoted otherwise.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    match begins && text.chars().all(plain) && !text.ends_with(':') {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

/// Operators and backends that another runtime has.
#[derive(Default)]
pub struct Offered {
    operators: BTreeSet<String>,
    backends: BTreeSet<String>,
}

impl Offered {
    /// Reads a list: a name per line, or the YAML of a build (`- op: add.out`, `aten::add.out:`). What is behind `#` is a
    /// comment. Names without a namespace are in `aten`; a word of its own that begins with a capital is a backend.
    pub fn parse(text: &str) -> Offered {
        let mut offered = Offered::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim().trim_start_matches("- ");
            let (line, named) = match line.strip_prefix("op:").or_else(|| line.strip_prefix("func:")) {
                Some(rest) => (rest.trim(), true),
                None => (line, false),
            };
            // A schema has its arguments behind the name.
            let name =
                line.split(['(', ' ']).next().unwrap_or_default().trim_end_matches(':').trim_matches(['"', '\'']);
            let alone = line.split_whitespace().count() == 1 && !line.ends_with(':');
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if name.contains("::") {
                offered.operators.insert(name.to_owned());
            } else if !name.is_empty() && (named || alone && name.contains('.')) && !name.contains('/') {
                offered.operators.insert(format!("aten::{name}"));
            } else if alone && plain && name.starts_with(|c: char| c.is_ascii_uppercase()) {
                offered.backends.insert(name.to_owned());
            }
        }
        offered
    }

    /// Returns whether the list names the operator.
    pub fn has(&self, operator: &str) -> bool {
        self.operators.contains(operator)
    }

    /// Returns whether the list names the backend; `None` if it names no backend at all, as lists of operators do.
    pub fn has_backend(&self, backend: &str) -> Option<bool> {
        (!self.backends.is_empty()).then(|| self.backends.contains(backend))
    }

    /// Returns whether the list names nothing.
    pub fn is_empty(&self) -> bool {
        self.operators.is_empty() && self.backends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_several_forms_are_read() {
        let text = "# a runtime\naten::add.out\nmul.out\n- op: sub.out\n- func: my::scale.out(Tensor x) -> Tensor\n\
            operators:\n  aten::relu.out:\n    debug_info:\n    - a/b.pte\n  kernels:\n    - arg_meta: null\n";
        let offered = Offered::parse(text);
        for name in ["aten::add.out", "aten::mul.out", "aten::sub.out", "my::scale.out", "aten::relu.out"] {
            assert!(offered.has(name), "{name}");
        }
        assert_eq!(offered.operators.len(), 5);
        assert_eq!(offered.has_backend("XnnpackBackend"), None);
        let offered = Offered::parse("add.out\nXnnpackBackend # of our own\n");
        assert_eq!(["XnnpackBackend", "VulkanBackend"].map(|id| offered.has_backend(id)), [Some(true), Some(false)]);
    }

    #[test]
    fn text_that_yaml_could_misread_is_quoted() {
        for (text, want) in [("aten::add.out", "aten::add.out"), ("a b", "\"a b\""), ("1", "\"1\""), ("x:", "\"x:\"")] {
            assert_eq!(scalar(text), want);
        }
    }
}
