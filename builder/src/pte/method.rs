//! A method under construction: its values, inputs, outputs and state.
//!
//! Invariant: an index in a value, an instruction or a list of this method is one of its values; a list of tensors comes
//! after what it holds.

use edgepack_format::notation::ValueName;
use edgepack_format::pte::{DataLocation, Frame, KernelTypes, TensorShapeDynamism};
use edgepack_format::tensor::TensorView;

use super::args::{Arg, ConstantId, IntArg, Owner, TensorArg, ValueId, kind_name};
use super::parts::Method;
use super::program::{ProgramBuilder, check_content};
use super::spec::TensorSpec;
use super::values::{Initial, Place, Role, Tensor, Value};
use crate::build_error::BuildError;
use crate::content::Data;

/// Builds one method of a program.
pub struct MethodBuilder<'p, 'd> {
    pub(crate) program: &'p mut ProgramBuilder<'d>,
    pub(crate) index: usize,
}

impl<'d> ProgramBuilder<'d> {
    /// Begins a method, or goes on with the one of this name.
    pub fn method(&mut self, name: &str) -> MethodBuilder<'_, 'd> {
        let known = self.methods.iter().position(|method| method.name == name);
        let index = known.unwrap_or_else(|| {
            self.methods.push(Method::new(name));
            self.methods.len().saturating_sub(1)
        });
        MethodBuilder { program: self, index }
    }

    /// Adds a method that takes nothing, runs nothing and gives these values, as language-model runners ask for
    /// settings: `program.getter("get_vocab_size", args![32_000i64])`.
    pub fn getter(&mut self, name: &str, values: impl IntoIterator<Item = Arg>) -> Result<(), BuildError> {
        self.check_name_is_new(name)?;
        self.methods.push(Method::new(name));
        let index = self.methods.len().saturating_sub(1);
        let outputs: Result<(), _> =
            values.into_iter().try_for_each(|value| MethodBuilder { program: self, index }.output(value).map(drop));
        let method = self.methods.pop();
        outputs?;
        self.getters.extend(method);
        Ok(())
    }
}

impl<'d> MethodBuilder<'_, 'd> {
    pub(crate) fn method(&self) -> Option<&Method> {
        self.program.methods.get(self.index)
    }

    /// Does something to the method's parts. The method of a builder is always there.
    pub(crate) fn with<T: Default>(&mut self, change: impl FnOnce(&mut Method) -> T) -> T {
        self.program.methods.get_mut(self.index).map(change).unwrap_or_default()
    }

    pub(crate) fn name(&self) -> String {
        self.method().map(|method| format!("method `{}`", method.name)).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, value: Value) -> usize {
        self.with(|method| {
            method.values.push(value);
            method.values.len().saturating_sub(1)
        })
    }

    pub(crate) fn id(&self, index: usize) -> Result<ValueId, BuildError> {
        let owner = self.method().map(|method| method.owner);
        owner.map(|owner| ValueId { owner, index }).ok_or_else(|| self.foreign("a value", None))
    }

    /// An id that came from somewhere else.
    pub(crate) fn foreign(&self, what: impl Into<String>, owner: Option<Owner>) -> BuildError {
        let methods = self.program.methods.iter().chain(&self.program.getters);
        let known = methods.into_iter().find(|method| Some(method.owner) == owner);
        let owner = known.map_or("another program".to_owned(), |method| format!("method `{}`", method.name));
        BuildError::Foreign { what: what.into(), owner, user: self.name() }
    }

    /// The index of a value of this method.
    pub(crate) fn own(&self, id: ValueId) -> Result<usize, BuildError> {
        match self.method() {
            Some(method) if method.owner == id.owner => Ok(id.index),
            _ => Err(self.foreign(ValueName(id.index).to_string(), Some(id.owner))),
        }
    }

    /// The value that stands for a constant here; made at its first use.
    fn constant_value(&mut self, id: ConstantId) -> Result<usize, BuildError> {
        if id.owner != self.program.owner {
            return Err(self.foreign(format!("constant {}", id.index), Some(id.owner)));
        }
        let known = self.method().and_then(|method| method.constants.get(&id.index).copied());
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(constant) = self.program.constants.get(id.index) else {
            return Err(self.foreign(format!("constant {}", id.index), Some(id.owner)));
        };
        let tensor = Tensor {
            layout: constant.layout.clone(),
            dynamism: TensorShapeDynamism::STATIC,
            place: Place::default(),
            role: Role::Constant(id.index),
        };
        let value = self.push(Value::Tensor(Box::new(tensor)));
        self.with(|method| method.constants.insert(id.index, value));
        Ok(value)
    }

    pub(crate) fn tensor_arg(&mut self, arg: TensorArg, place: &str) -> Result<usize, BuildError> {
        let index = match arg {
            TensorArg::Value(id) => self.own(id)?,
            TensorArg::Constant(id) => self.constant_value(id)?,
        };
        self.expect(index, KernelTypes::TENSOR, place)?;
        Ok(index)
    }

    /// A value of this kind, or an error that says what it is instead.
    pub(crate) fn expect(&self, index: usize, want: u8, place: &str) -> Result<(), BuildError> {
        let found = self.method().map_or(0, |method| method.tag(index));
        if found == want {
            return Ok(());
        }
        Err(BuildError::Kind {
            place: place.to_owned(),
            want: kind_name(want).to_owned(),
            found: format!("{} ({index})", kind_name(found), index = ValueName(index)),
        })
    }

    /// The value of an argument: the one it names, or a new one.
    pub(crate) fn materialise(&mut self, arg: Arg, place: &str) -> Result<usize, BuildError> {
        let value = match arg {
            Arg::Value(id) => return self.own(id),
            Arg::Constant(id) => return self.constant_value(id),
            Arg::None => Value::Null,
            Arg::Int(number) => Value::Int(number),
            Arg::Bool(truth) => Value::Bool(truth),
            Arg::Double(number) => Value::Double(number),
            Arg::Text(text) => Value::Text(text),
            Arg::Bools(items) => Value::Bools(items),
            Arg::Doubles(items) => Value::Doubles(items),
            Arg::Ints(items) => {
                let mut indices = Vec::with_capacity(items.len());
                for item in items {
                    indices.push(match item {
                        IntArg::Literal(number) => self.push(Value::Int(number)),
                        IntArg::Value(id) => {
                            let index = self.own(id)?;
                            self.expect(index, KernelTypes::INT, place)?;
                            index
                        }
                    });
                }
                Value::Ints(indices)
            }
            Arg::Tensors(items) => {
                Value::Tensors(items.into_iter().map(|item| self.tensor_arg(item, place)).collect::<Result<_, _>>()?)
            }
            Arg::OptionalTensors(items) => {
                let item = |item: Option<TensorArg>| item.map(|item| self.tensor_arg(item, place)).transpose();
                Value::OptionalTensors(items.into_iter().map(item).collect::<Result<_, _>>()?)
            }
        };
        Ok(self.push(value))
    }

    /// A value of any kind: a boxed number, text, a list, `None`.
    pub fn value(&mut self, value: impl Into<Arg>) -> Result<ValueId, BuildError> {
        let index = self.materialise(value.into(), "value")?;
        self.id(index)
    }

    /// A constant of the program: as [`ProgramBuilder::constant`].
    pub fn constant(&mut self, name: &str, tensor: &TensorView<'d>) -> Result<ConstantId, BuildError> {
        self.program.constant(name, tensor)
    }

    /// The builder of the program.
    pub fn program(&mut self) -> &mut ProgramBuilder<'d> {
        self.program
    }

    /// A tensor that is neither input nor output nor the result of a call yet.
    pub fn tensor(&mut self, spec: TensorSpec) -> Result<ValueId, BuildError> {
        let tensor = self.resolve(spec, "tensor")?;
        let index = self.push(Value::Tensor(Box::new(tensor)));
        self.id(index)
    }

    /// A tensor that is the bytes of another one, planned in its place. No instruction makes it, so it cannot be of
    /// something that is replaced while it is still needed.
    pub fn view(&mut self, of: ValueId, spec: TensorSpec) -> Result<ValueId, BuildError> {
        let base = self.own(of)?;
        let place = format!("view of {base}", base = ValueName(base));
        let mut tensor = self.resolve(spec, &place)?;
        let (layout, role) = match self.method().and_then(|method| method.values.get(base)) {
            Some(Value::Tensor(base)) => (base.layout.clone(), base.role.clone()),
            other => {
                let found = kind_name(other.map_or(0, Value::tag)).to_owned();
                return Err(BuildError::Kind { place, want: kind_name(KernelTypes::TENSOR).to_owned(), found });
            }
        };
        let root = match role {
            Role::Plain => base,
            Role::View(root) => root,
            Role::Constant(_) | Role::State { .. } => {
                let message = "only what is computed or given has views".to_owned();
                return Err(BuildError::Memory { place, message });
            }
        };
        if tensor.layout.byte_len() != layout.byte_len() {
            let (have, want) = (tensor.layout.byte_len() as u64, layout.byte_len() as u64);
            return Err(BuildError::Length { place, have, want });
        }
        tensor.role = Role::View(root);
        let index = self.push(Value::Tensor(Box::new(tensor)));
        self.id(index)
    }

    /// The next input, a tensor.
    pub fn input(&mut self, spec: TensorSpec) -> Result<ValueId, BuildError> {
        let place = format!("input {} of {}", self.method().map_or(0, |method| method.inputs.len()), self.name());
        let tensor = self.resolve(spec, &place)?;
        let index = self.push(Value::Tensor(Box::new(tensor)));
        self.with(|method| method.inputs.push(index));
        self.id(index)
    }

    /// Makes a number, a text or a tensor the next input. Runtimes take a number only if it is the one given here.
    pub fn input_value(&mut self, value: impl Into<Arg>) -> Result<ValueId, BuildError> {
        let place = format!("input {} of {}", self.method().map_or(0, |method| method.inputs.len()), self.name());
        let value = value.into();
        let index = self.materialise(value, &place)?;
        let (taken, constant, kind) =
            self.with(|method| (method.inputs.contains(&index), method.is_constant(index), method.tag(index)));
        if taken {
            return Err(BuildError::Conflict {
                what: "the value",
                name: index.to_string(),
                first: "an input".to_owned(),
                second: "another".to_owned(),
            });
        }
        if constant {
            return Err(BuildError::ConstantWritten { place, value: ValueName(index).to_string() });
        }
        if matches!(kind, KernelTypes::INT_LIST..=KernelTypes::OPTIONAL_TENSOR_LIST) {
            let want = "a tensor, a number, text or None".to_owned();
            return Err(BuildError::Kind { place, want, found: kind_name(kind).to_owned() });
        }
        self.with(|method| method.inputs.push(index));
        self.id(index)
    }

    /// Makes a value of any kind the next output.
    pub fn output(&mut self, value: impl Into<Arg>) -> Result<ValueId, BuildError> {
        let index = self.materialise(value.into(), "output")?;
        self.with(|method| method.outputs.push(index));
        self.id(index)
    }

    /// State: a tensor that keeps its bytes from one run to the next, and starts with what the memory holds.
    pub fn state(&mut self, name: &str, spec: TensorSpec) -> Result<ValueId, BuildError> {
        self.add_state(name, spec, Initial::None)
    }

    /// State that starts with this value.
    pub fn state_with(&mut self, name: &str, initial: &TensorView<'d>) -> Result<ValueId, BuildError> {
        self.state_from(name, TensorSpec::of(initial.layout()), initial.data(), 0)
    }

    /// State of any description that starts with these bytes, stored in list `list` of initial values. Stock runtimes know
    /// list 0 only.
    pub fn state_from(
        &mut self,
        name: &str,
        spec: TensorSpec,
        initial: impl Into<Data<'d>>,
        list: u64,
    ) -> Result<ValueId, BuildError> {
        let data = initial.into();
        let layout = self.resolve(spec.clone(), name)?.layout;
        check_content(name, &layout, &data)?;
        if list > self.program.initial.len() as u64 {
            let message = format!("list {list} of initial values, there are {} so far", self.program.initial.len());
            return Err(BuildError::Memory { place: format!("state `{name}`"), message });
        }
        self.check_state_name(name)?;
        let pool = self.program.initial.entry(list).or_default();
        let buffer = pool.intern(data).map_err(BuildError::reading(format!("state `{name}`")))?;
        self.add_state(name, spec, Initial::Buffer { list, buffer })
    }

    /// State that starts with the entry of its name in a data file.
    pub fn state_external(&mut self, name: &str, initial: &TensorView<'d>, tag: &str) -> Result<ValueId, BuildError> {
        self.check_state_name(name)?;
        self.program.external_initial(name, initial.layout(), initial.data().into(), tag)?;
        self.add_state(name, TensorSpec::of(initial.layout()), Initial::External)
    }

    fn check_state_name(&self, name: &str) -> Result<(), BuildError> {
        let taken = self.method().is_some_and(|method| {
            method.values.iter().any(|value| {
                matches!(value, Value::Tensor(tensor) if matches!(&tensor.role, Role::State { name: known, .. } if known == name))
            })
        });
        if name.is_empty() {
            return Err(BuildError::Name { what: "state", name: String::new(), why: "it is empty" });
        }
        if taken {
            return Err(BuildError::Conflict {
                what: "the state",
                name: name.to_owned(),
                first: "a tensor".to_owned(),
                second: "another".to_owned(),
            });
        }
        Ok(())
    }

    fn add_state(&mut self, name: &str, spec: TensorSpec, initial: Initial) -> Result<ValueId, BuildError> {
        self.check_state_name(name)?;
        let place = format!("state `{name}`");
        let mut tensor = self.resolve(spec, &place)?;
        if tensor.place.planned == Some(false) {
            let message = "it keeps its bytes in planned memory, but is to have none".to_owned();
            return Err(BuildError::Memory { place, message });
        }
        tensor.role = Role::State { name: name.to_owned(), initial };
        let index = self.push(Value::Tensor(Box::new(tensor)));
        self.id(index)
    }

    /// Sets whether inputs that do not say so themselves have planned memory; else the caller provides it.
    pub fn plan_inputs(&mut self, plan: bool) -> &mut Self {
        self.with(|method| method.plan_inputs = plan);
        self
    }

    /// Sets whether outputs that do not say so themselves have planned memory; else the caller provides it.
    pub fn plan_outputs(&mut self, plan: bool) -> &mut Self {
        self.with(|method| method.plan_outputs = plan);
        self
    }

    /// Sets the nesting of arguments and results, as pytree strings. Without them both are flat tuples.
    pub fn containers(&mut self, inputs: &str, outputs: &str) -> &mut Self {
        self.with(|method| method.containers = (Some(inputs.to_owned()), Some(outputs.to_owned())));
        self
    }

    /// The source lines that the instructions from here on come from, outermost first; none again for an empty list.
    pub fn stack_trace(&mut self, frames: impl IntoIterator<Item = Frame<'static>>) -> &mut Self {
        let frames: Vec<_> = frames.into_iter().collect();
        self.with(|method| method.frames = (!frames.is_empty()).then_some(frames));
        self
    }

    /// Returns the location for the payload of the next delegate.
    pub(crate) fn payload_location(&self, empty: bool) -> DataLocation {
        match self.program.options.inline_delegates || empty {
            true => DataLocation::INLINE,
            false => DataLocation::SEGMENT,
        }
    }
}

/// A constant is in a place that is written to.
pub(crate) fn constant_written(place: &str, index: usize) -> BuildError {
    BuildError::ConstantWritten { place: place.to_owned(), value: ValueName(index).to_string() }
}
