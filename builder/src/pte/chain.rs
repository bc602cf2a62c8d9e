//! Instructions that are not calls: moves, jumps and frees; and the chains they are in.

use edgepack_format::notation::ValueName;
use edgepack_format::pte::KernelTypes;
use edgepack_format::scalar::ScalarType;

use super::args::{Arg, LabelId, ValueId, kind_name};
use super::method::{MethodBuilder, constant_written};
use super::parts::{Chain, Step};
use super::values::{Role, Value};
use crate::build_error::BuildError;

impl MethodBuilder<'_, '_> {
    pub(crate) fn step(&mut self, step: Step) {
        self.with(|method| {
            let frames = method.frames.clone();
            if let Some(chain) = method.chain_mut() {
                chain.steps.push((step, frames));
            }
        });
    }

    fn here(&self) -> usize {
        self.method().and_then(|method| method.chains.last()).map_or(0, |chain| chain.steps.len())
    }

    /// Lists the instructions of the current chain: the operator it calls by full name, `delegate` and the backend,
    /// `move`, `jump` or `free`.
    pub fn instructions(&self) -> Vec<String> {
        let Some(method) = self.method() else { return Vec::new() };
        let steps = method.chains.last().map_or(&[][..], |chain| &chain.steps);
        let operator = |index: usize| match method.operators.get(index) {
            Some((name, overload)) if overload.is_empty() => name.clone(),
            Some((name, overload)) => format!("{name}.{overload}"),
            None => "?".to_owned(),
        };
        let backend = |index: usize| method.delegates.get(index).map_or("?", |delegate| &delegate.backend);
        let what = |(step, _): &(Step, _)| match step {
            Step::Kernel { operator: index, .. } => operator(*index),
            Step::Delegate { delegate, .. } => format!("delegate {}", backend(*delegate)),
            Step::Move { .. } => "move".to_owned(),
            Step::JumpFalse { .. } => "jump".to_owned(),
            Step::Free { .. } => "free".to_owned(),
        };
        steps.iter().map(what).collect()
    }

    /// Returns the number of instructions in the current chain so far.
    pub fn instruction_count(&self) -> usize {
        self.here()
    }

    fn chain_name(&self, chain: usize) -> String {
        format!("chain {chain} of {}", self.name())
    }

    /// Begins another chain: what follows runs after all before it. A first chain without instructions is not left empty
    /// but used.
    pub fn chain(&mut self) -> &mut Self {
        self.with(|method| {
            let unused = |chain: &Chain| chain.steps.is_empty() && chain.inputs.is_empty() && chain.outputs.is_empty();
            if !(method.chains.len() == 1 && method.chains.first().is_some_and(unused)) {
                method.chains.push(Chain::default());
            }
        });
        self
    }

    /// Lists values as inputs of the current chain. Runtimes do not look; planning keeps them alive.
    pub fn chain_inputs(&mut self, values: impl IntoIterator<Item = ValueId>) -> Result<&mut Self, BuildError> {
        let values = values.into_iter().map(|id| self.own(id)).collect::<Result<Vec<_>, _>>()?;
        self.with(|method| {
            if let Some(chain) = method.chain_mut() {
                chain.inputs.extend(values);
            }
        });
        Ok(self)
    }

    /// Lists values as outputs of the current chain. Runtimes do not look; planning keeps them alive.
    pub fn chain_outputs(&mut self, values: impl IntoIterator<Item = ValueId>) -> Result<&mut Self, BuildError> {
        let values = values.into_iter().map(|id| self.own(id)).collect::<Result<Vec<_>, _>>()?;
        self.with(|method| {
            if let Some(chain) = method.chain_mut() {
                chain.outputs.extend(values);
            }
        });
        Ok(self)
    }

    /// A label for jumps within the current chain; [`MethodBuilder::bind`] says where it is.
    pub fn label(&mut self) -> LabelId {
        let owner = self.method().map_or(self.program.owner, |method| method.owner);
        let (chain, index) = self.with(|method| {
            let chain = method.chains.len().saturating_sub(1);
            let labels = method.chain_mut().map(|chain| {
                chain.labels.push(None);
                chain.labels.len().saturating_sub(1)
            });
            (chain, labels.unwrap_or(0))
        });
        LabelId { owner, chain, index }
    }

    /// Places a label before the next instruction, or at the end of the chain if there is none.
    pub fn bind(&mut self, label: LabelId) -> Result<(), BuildError> {
        self.check_label(label)?;
        let here = self.here();
        let bound = self.with(|method| {
            let place = method.chain_mut().and_then(|chain| chain.labels.get_mut(label.index));
            place.map(|place| place.replace(here)).unwrap_or_default()
        });
        match bound {
            None => Ok(()),
            Some(_) => {
                let owner = self.chain_name(label.chain);
                Err(BuildError::Label { label: label.index, owner, what: "has a place already" })
            }
        }
    }

    /// Labels are those of the current chain: jumps stay within one.
    fn check_label(&self, label: LabelId) -> Result<(), BuildError> {
        let what = format!("label {}", label.index);
        let Some(method) = self.method().filter(|method| method.owner == label.owner) else {
            return Err(self.foreign(what, Some(label.owner)));
        };
        let current = method.chains.len().saturating_sub(1);
        match label.chain == current {
            true => Ok(()),
            false => {
                Err(BuildError::Foreign { what, owner: self.chain_name(label.chain), user: self.chain_name(current) })
            }
        }
    }

    /// Goes on at the label if the condition is false: a bool, a tensor of bools of which any is, or a number that a call
    /// computes and that is zero or false then.
    pub fn jump_if_false(&mut self, condition: impl Into<Arg>, label: LabelId) -> Result<(), BuildError> {
        self.check_label(label)?;
        let here = self.here();
        let place = format!("jump at {here} of {}", self.name());
        let at = self.method().and_then(|method| *method.chains.last()?.labels.get(label.index)?);
        if at == Some(here) {
            let owner = self.chain_name(label.chain);
            return Err(BuildError::Label { label: label.index, owner, what: "is the jump itself" });
        }
        let condition = self.materialise(condition.into(), &place)?;
        let found =
            self.method().and_then(|method| method.values.get(condition)).map_or("nothing", |value| match value {
                Value::Bool(_) | Value::Int(_) | Value::Double(_) => "",
                Value::Tensor(tensor) if tensor.layout.scalar_type() == ScalarType::BOOL => "",
                Value::Tensor(_) => "a tensor that is not bool",
                other => kind_name(other.tag()),
            });
        if !found.is_empty() {
            let want = "a bool, a number or a tensor of bool".to_owned();
            return Err(BuildError::Kind {
                place,
                want,
                found: format!("{found} ({condition})", condition = ValueName(condition)),
            });
        }
        self.step(Step::JumpFalse { condition, label: label.index });
        Ok(())
    }

    /// Goes on at the label, always.
    pub fn jump(&mut self, label: LabelId) -> Result<(), BuildError> {
        self.jump_if_false(false, label)
    }

    /// Copies one value to another of the same kind; the other cannot be a constant.
    pub fn assign(&mut self, from: impl Into<Arg>, to: ValueId) -> Result<(), BuildError> {
        let place = format!("move at {} of {}", self.here(), self.name());
        let to = self.own(to)?;
        let from = self.materialise(from.into(), &place)?;
        let (source, target, constant) = self.with(|method| (method.tag(from), method.tag(to), method.is_constant(to)));
        if constant {
            return Err(constant_written(&place, to));
        }
        if source != target {
            return Err(BuildError::Kind {
                place,
                want: format!("{} ({to})", kind_name(target), to = ValueName(to)),
                found: format!("{} ({from})", kind_name(source), from = ValueName(from)),
            });
        }
        self.step(Step::Move { from, to });
        Ok(())
    }

    /// Gives up the bytes of a tensor that has no planned memory.
    pub fn free(&mut self, tensor: ValueId) -> Result<(), BuildError> {
        let place = format!("free at {} of {}", self.here(), self.name());
        let index = self.own(tensor)?;
        self.expect(index, KernelTypes::TENSOR, &place)?;
        let plain = self
            .method()
            .and_then(|method| method.values.get(index))
            .is_some_and(|value| matches!(value, Value::Tensor(tensor) if tensor.role == Role::Plain));
        if !plain {
            let want = "a tensor that is neither constant nor state".to_owned();
            return Err(BuildError::Kind { place, want, found: ValueName(index).to_string() });
        }
        self.step(Step::Free { value: index });
        Ok(())
    }
}
