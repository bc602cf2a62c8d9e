//! Convolution of 16-bit floats: what it retains, and its scratch memory.

use edgepack_compute::conv::{HalfConvolution, Operands};
use edgepack_compute::half::Narrow;
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};

use super::{BIAS, FORWARD, OUT, PLAIN, floats, geometry, scratch_bytes};

/// Looks at one instruction.
pub(super) fn prepare<T: Narrow>(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let constant = args.tensor(FORWARD.weight)?.constant.filter(|_| args.optimize());
    if let Some(constant) = constant {
        args.retained().reserve(constant.element_count().saturating_mul(size_of::<f32>()))?;
    }
    let mut bytes = scratch_bytes(args, &PLAIN)?;
    for arg in [FORWARD.input, FORWARD.weight, BIAS, OUT] {
        let elements = args.tensor_opt(arg)?.map_or(0, |tensor| tensor.meta.element_count());
        bytes = bytes.saturating_add(elements.saturating_mul(size_of::<f32>()));
    }
    args.scratch(bytes);
    let constant = constant.map(|constant| constant.as_slice::<T>()).transpose()?;
    Ok(Box::new(Instruction(HalfConvolution::new(constant)?)))
}

/// One instruction.
struct Instruction<T>(HalfConvolution<T>);

impl<T: Narrow> Run for Instruction<T> {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let geometry = geometry(cx, &PLAIN)?;
        cx.retained().charge(self.0.bytes_to_retain(&geometry))?;
        let views = cx.views();
        let operands = Operands {
            input: views.tensor(FORWARD.input)?.as_slice::<T>()?,
            weight: views.tensor(FORWARD.weight)?.as_slice::<T>()?,
            bias: views.tensor_opt(BIAS)?.map(|bias| bias.as_slice::<T>()).transpose()?,
        };
        let out = views.out(OUT)?.into_slice::<T>()?;
        Ok(self.0.run(&geometry, &operands, floats(views.scratch()?)?, out)?)
    }

    fn retained_bytes(&self) -> usize {
        self.0.retained_bytes()
    }
}
