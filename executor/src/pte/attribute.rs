//! State by name: tensors that a program keeps between runs and names, such as the buffers of a module.

use edgepack_format::pte::{KernelTypes, Tensor};
use edgepack_format::tensor::{TensorBuf, TensorLayout};

use crate::api::state::Value;
use crate::pte::error::RunError;
use crate::pte::input::{Input, ToInput};
use crate::pte::method::Method;
use crate::pte::run::Running;

impl Method {
    /// The names of the tensors that the method keeps between runs, in the order of its values.
    pub fn attributes(&self) -> Result<Vec<String>, RunError> {
        let mut names = Vec::new();
        self.each_attribute(|name, _| names.push(name.to_owned()))?;
        Ok(names)
    }

    /// Returns a copy of the tensor that has this name, with the sizes that it has now.
    ///
    /// ```
    /// # use edgepack_executor::Method;
    /// # fn demo(method: &mut Method) -> Result<(), Box<dyn std::error::Error>> {
    /// let cache = method.attribute("layers.0.k_cache")?;
    /// println!("{:?}", cache.layout().sizes());
    /// # Ok(())
    /// # }
    /// ```
    pub fn attribute(&mut self, name: &str) -> Result<TensorBuf, RunError> {
        let tensor = self.find_attribute(name)?;
        let running = Running::begin(self)?;
        let state = &running.method().state;
        let tensor = &state.tensors[tensor];
        let meta = state.meta(tensor);
        let layout = TensorLayout::new(meta.dtype, meta.sizes, meta.dim_order).map_err(|error| wrong(name, error))?;
        // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories, so nothing writes there.
        let data = unsafe { tensor.region.prefix(meta.byte_len()).bytes() }.to_vec();
        TensorBuf::from_bytes(layout, data).map_err(|error| wrong(name, error))
    }

    /// Writes elements into the tensor that has this name; type, sizes and order of dimensions must be its own.
    pub fn set_attribute(&mut self, name: &str, value: impl ToInput) -> Result<(), RunError> {
        let tensor = self.find_attribute(name)?;
        let running = Running::begin(self)?;
        let state = &running.method().state;
        let tensor = &state.tensors[tensor];
        let meta = state.meta(tensor);
        let Input::Tensor(value) = value.to_input() else {
            return Err(wrong(name, "it is a tensor"));
        };
        let (layout, data) = (value.layout(), value.data());
        let (dtype, sizes, dim_order) = (layout.scalar_type(), layout.sizes(), layout.dim_order());
        if dtype != meta.dtype || sizes != meta.sizes || dim_order != meta.dim_order || data.len() != meta.byte_len() {
            let (of, have) = (meta.dtype, meta.sizes);
            return Err(wrong(name, format!("it is {of} {have:?}, what is written is {dtype} {sizes:?}")));
        }
        // SAFETY: as above; `data` is the caller's and the region the method's own, so they do not overlap: nothing that
        // the caller can borrow is in a region while the method is exclusively borrowed.
        unsafe { tensor.region.prefix(meta.byte_len()).bytes_mut() }.copy_from_slice(data);
        Ok(())
    }

    fn find_attribute(&self, wanted: &str) -> Result<usize, RunError> {
        let mut found = None;
        self.each_attribute(|name, tensor| {
            if name == wanted {
                found = found.or(Some(tensor));
            }
        })?;
        found.ok_or_else(|| wrong(wanted, "the method keeps no tensor of that name"))
    }

    /// Visits the tensors that are named and not constant, by number.
    fn each_attribute(&self, mut visit: impl FnMut(&str, usize)) -> Result<(), RunError> {
        let view = self.program.view()?;
        let Some(values) = view.plan(&self.name).and_then(|plan| plan.values) else { return Ok(()) };
        for (index, value) in values.iter().enumerate() {
            let Ok(value) = value else { continue };
            let Some(KernelTypes::Tensor(Tensor { extra_tensor_info: Some(info), .. })) = value.val else { continue };
            let (Some(name), Some(Value::Tensor(tensor))) = (info.fully_qualified_name, self.state.values.get(index))
            else {
                continue;
            };
            let tensor = *tensor as usize;
            if self.state.tensors.get(tensor).is_some_and(|tensor| !tensor.constant) {
                visit(&name, tensor);
            }
        }
        Ok(())
    }
}

fn wrong(name: &str, message: impl ToString) -> RunError {
    RunError::Attribute { name: name.to_owned(), message: message.to_string() }
}
