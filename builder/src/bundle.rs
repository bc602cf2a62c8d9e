//! Bundled programs: a program with recorded runs of its methods.
//!
//! A case is compared with its method when it is added, so what is finished verifies.

use std::collections::BTreeMap;
use std::path::Path;

use edgepack_format::bundle::verify::verify;
use edgepack_format::bundle::{
    BundledMethodTestCase, BundledMethodTestSuite, BundledProgram, Tensor, VERSION, Value, ValueUnion,
};
use edgepack_format::limits::Limits;
use edgepack_format::pte::{
    Bool, Double, ExecutionPlan, FileExtent, Int, KernelTypes, ProgramRef, Tensor as Declared, TensorShapeDynamism,
};
use edgepack_format::row::{Blob, Scalars};
use edgepack_format::tensor::TensorView;

use crate::build_error::BuildError;
use crate::error::Error;
use crate::{raw, write_file};

/// A value that goes into a method or is expected to come out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CaseValue<'a> {
    /// Elements with their layout; sizes may be less than the method's where they are dynamic.
    Tensor(TensorView<'a>),
    /// Number for an `Int` of the method.
    Int(i64),
    /// Truth value for a `Bool` of the method.
    Bool(bool),
    /// Number for a `Double` of the method.
    Double(f64),
}

macro_rules! from {
    ($($from:ty => $variant:ident),*) => {
        $(impl<'a> From<$from> for CaseValue<'a> {
            fn from(value: $from) -> Self {
                CaseValue::$variant(value)
            }
        })*
    };
}

from!(TensorView<'a> => Tensor, i64 => Int, bool => Bool, f64 => Double);

/// Builds a `.bpte` file around a program.
pub struct BundleBuilder<'a> {
    program: &'a [u8],
    plans: BTreeMap<String, ExecutionPlan<'a>>,
    suites: BTreeMap<String, Vec<BundledMethodTestCase<'a>>>,
}

impl<'a> BundleBuilder<'a> {
    /// A bundle of this program, a complete `.pte` file, without cases.
    pub fn new(program: &'a [u8]) -> Result<Self, BuildError> {
        let parsed = ProgramRef::parse(program, FileExtent::of(program), &Limits::DEFAULT)?;
        let mut plans = BTreeMap::new();
        for plan in parsed.plans().iter() {
            let plan = plan.map_err(Error::Read)?;
            plans.insert(plan.name.as_deref().unwrap_or_default().to_owned(), plan);
        }
        Ok(BundleBuilder { program, plans, suites: BTreeMap::new() })
    }

    /// Adds a run of a method. Without expected outputs it can be run but not checked.
    pub fn case(
        &mut self,
        method: &str,
        inputs: &[CaseValue<'a>],
        outputs: &[CaseValue<'a>],
    ) -> Result<&mut Self, BuildError> {
        let Some(plan) = self.plans.get(method) else {
            let known = self.plans.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(BuildError::Kind {
                place: "test case".to_owned(),
                want: format!("a method of the program ({known})"),
                found: format!("`{method}`"),
            });
        };
        let number = self.suites.get(method).map_or(0, Vec::len);
        let place = format!("case {number} of `{method}`");
        let rows = |values: &[CaseValue<'a>], list: &Option<Scalars<'a, i32>>, what| {
            rows(values, list.as_ref(), plan, &format!("{place}, {what}"), what)
        };
        let inputs = rows(inputs, &plan.inputs, "inputs")?;
        let expected = match outputs.is_empty() {
            true => Vec::new(),
            false => rows(outputs, &plan.outputs, "outputs")?,
        };
        let case = BundledMethodTestCase { inputs: Some(inputs.into()), expected_outputs: Some(expected.into()) };
        self.suites.entry(method.to_owned()).or_default().push(case);
        Ok(self)
    }

    /// Encodes the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        let suites = self.suites.iter().map(|(name, cases)| BundledMethodTestSuite {
            method_name: Some(name.clone().into()),
            test_cases: Some(cases.clone().into()),
        });
        let bytes = raw::bundled(&BundledProgram {
            version: VERSION,
            method_test_suites: Some(suites.collect::<Vec<_>>().into()),
            program: Some(Blob(self.program.into())),
        })?;
        let verdict = verify(&bytes, &Limits::DEFAULT);
        match verdict.findings.has_errors() {
            true => Err(BuildError::Findings(verdict.findings)),
            false => Ok(bytes),
        }
    }

    /// Writes the file under this name. An old one stays until the new one is complete.
    pub fn write_to_path(&self, path: impl AsRef<Path>) -> Result<(), BuildError> {
        let bytes = self.to_bytes()?;
        let what = path.as_ref().display().to_string();
        write_file::replace(path, |out| out.write_all(&bytes)).map_err(BuildError::reading(what))
    }
}

/// The values of one side of a case, compared with what the method declares there.
fn rows<'a>(
    values: &[CaseValue<'a>],
    list: Option<&Scalars<'a, i32>>,
    plan: &ExecutionPlan<'a>,
    place: &str,
    what: &'static str,
) -> Result<Vec<Value<'a>>, BuildError> {
    let want = list.map_or(0, Scalars::len);
    if values.len() != want {
        let (place, have, want) = (place.to_owned(), values.len(), want.to_string());
        return Err(BuildError::Count { place, what, have, want });
    }
    let mut rows = Vec::with_capacity(values.len());
    for (index, (value, declared)) in values.iter().zip(list.iter().flat_map(|list| list.iter())).enumerate() {
        let declared = match &plan.values {
            Some(rows) => usize::try_from(declared).ok().and_then(|index| rows.get(index).ok()).and_then(|row| row.val),
            None => None,
        };
        rows.push(Value { val: Some(row(value, declared.as_ref(), &format!("{place} {index}"))?) });
    }
    Ok(rows)
}

fn row<'a>(
    value: &CaseValue<'a>,
    declared: Option<&KernelTypes<'_>>,
    place: &str,
) -> Result<ValueUnion<'a>, BuildError> {
    let refuse =
        |want: &str, found: String| Err(BuildError::Kind { place: place.to_owned(), want: want.to_owned(), found });
    match (value, declared) {
        (CaseValue::Tensor(tensor), Some(KernelTypes::Tensor(declared))) => {
            check_shape(tensor, declared, place)?;
            let sizes: Result<Vec<i32>, _> = tensor.layout().sizes().iter().map(|size| i32::try_from(*size)).collect();
            Ok(ValueUnion::Tensor(Tensor {
                scalar_type: tensor.layout().scalar_type(),
                sizes: Some(sizes.map_err(|_| Error::Overflow)?.into()),
                data: Some(Blob(tensor.data().into())),
                dim_order: Some(tensor.layout().dim_order().to_vec().into()),
            }))
        }
        (CaseValue::Int(number), Some(KernelTypes::Int(_))) => Ok(ValueUnion::Int(Int { int_val: *number })),
        (CaseValue::Bool(truth), Some(KernelTypes::Bool(_))) => Ok(ValueUnion::Bool(Bool { bool_val: *truth })),
        (CaseValue::Double(number), Some(KernelTypes::Double(_))) => {
            Ok(ValueUnion::Double(Double { double_val: *number }))
        }
        (value, declared) => {
            let want = match declared {
                Some(KernelTypes::Tensor(_)) => "a tensor",
                Some(KernelTypes::Int(_)) => "an integer",
                Some(KernelTypes::Bool(_)) => "a bool",
                Some(KernelTypes::Double(_)) => "a double",
                _ => "a value that no bundle can hold",
            };
            refuse(
                want,
                match value {
                    CaseValue::Tensor(tensor) => format!("the tensor {}", tensor.layout()),
                    CaseValue::Int(number) => format!("the integer {number}"),
                    CaseValue::Bool(truth) => format!("the bool {truth}"),
                    CaseValue::Double(number) => format!("the double {number}"),
                },
            )
        }
    }
}

fn check_shape(tensor: &TensorView<'_>, declared: &Declared<'_>, place: &str) -> Result<(), BuildError> {
    let layout = tensor.layout();
    let sizes: Vec<i32> = declared.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
    let order: Vec<u8> = declared.dim_order.iter().flat_map(|order| order.iter()).collect();
    let fits = match declared.shape_dynamism {
        TensorShapeDynamism::STATIC => {
            layout.sizes().iter().map(|size| *size as i64).eq(sizes.iter().map(|size| i64::from(*size)))
        }
        _ => {
            let within = |(size, most): (&usize, &i32)| usize::try_from(*most).is_ok_and(|most| *size <= most);
            layout.sizes().len() == sizes.len() && layout.sizes().iter().zip(&sizes).all(within)
        }
    };
    if fits && layout.scalar_type() == declared.scalar_type && layout.dim_order() == order {
        return Ok(());
    }
    let most = if declared.shape_dynamism == TensorShapeDynamism::STATIC { "" } else { " at most" };
    Err(BuildError::Kind {
        place: place.to_owned(),
        want: format!("the tensor {}{most} {sizes:?} in order {order:?}", declared.scalar_type),
        found: format!("the tensor {layout} in order {:?}", layout.dim_order()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;
    use crate::pte::{ProgramBuilder, TensorSpec};
    use edgepack_format::bundle::BundleRef;
    use edgepack_format::scalar::ScalarType;

    fn program() -> Vec<u8> {
        let mut program = ProgramBuilder::new();
        let mut forward = program.method("forward");
        let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2])).unwrap();
        let n = forward.input_value(3i64).unwrap();
        let y = forward.call("aten::add.out", args![x, x], TensorSpec::like(x)).unwrap();
        forward.output(y).unwrap();
        forward.output(n).unwrap();
        let mut again = program.method("again");
        let x = again.input(TensorSpec::new(ScalarType::INT, [4, 3]).dynamic()).unwrap();
        again.output(x).unwrap();
        program.finish().unwrap().to_bytes().unwrap()
    }

    fn float(values: &[u8]) -> CaseValue<'_> {
        TensorView::of::<f32>(&[2], values).unwrap().into()
    }

    #[test]
    fn suites_are_sorted_and_cases_keep_their_order() {
        let program = program();
        let mut bundle = BundleBuilder::new(&program).unwrap();
        let (one, two) = ([1; 8], [2; 8]);
        bundle.case("forward", &[float(&one), 3i64.into()], &[float(&two), 3i64.into()]).unwrap();
        bundle.case("forward", &[float(&two), 3i64.into()], &[]).unwrap();
        let rows: CaseValue<'_> = TensorView::of::<i32>(&[2, 3], &[0; 24]).unwrap().into();
        bundle.case("again", std::slice::from_ref(&rows), std::slice::from_ref(&rows)).unwrap();
        let bytes = bundle.to_bytes().unwrap();
        assert_eq!(bytes, bundle.to_bytes().unwrap());
        let parsed = BundleRef::parse(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(parsed.program_bytes(), program);
        let names: Vec<_> = parsed.suites().iter().map(|suite| suite.unwrap().method_name.unwrap()).collect();
        assert_eq!(names, ["again", "forward"]);
        assert_eq!(parsed.cases("forward").unwrap().len(), 2);
    }

    #[test]
    fn a_case_that_does_not_fit_is_refused_with_both_sides() {
        let program = program();
        let mut bundle = BundleBuilder::new(&program).unwrap();
        let x = [0; 24];
        let ints: CaseValue<'_> = TensorView::of::<i32>(&[2], &x).unwrap().into();
        let wide: CaseValue<'_> = TensorView::of::<i32>(&[5, 1], &x).unwrap().into();
        let mut refused = |method: &str, inputs: &[CaseValue<'static>], outputs: &[CaseValue<'static>]| {
            bundle.case(method, inputs, outputs).err().unwrap().to_string()
        };
        let own = |value: &CaseValue<'_>| match value {
            CaseValue::Tensor(view) => {
                let data: &'static [u8] = Vec::leak(view.data().to_vec());
                CaseValue::Tensor(TensorView::new(view.layout().clone(), data).unwrap())
            }
            _ => CaseValue::Int(0),
        };
        let float = own(&float(&x));
        for (error, want) in [
            (
                refused("backward", &[], &[]),
                "test case: `backward` where a method of the program (again, forward) is asked for",
            ),
            (
                refused("forward", std::slice::from_ref(&float), &[]),
                "case 0 of `forward`, inputs: 1 inputs, 2 are asked for",
            ),
            (
                refused("forward", &[float.clone(), 3.0.into()], &[]),
                "case 0 of `forward`, inputs 1: the double 3 where an integer is asked for",
            ),
            (
                refused("forward", &[own(&ints), 3i64.into()], &[]),
                "case 0 of `forward`, inputs 0: the tensor i32[2] in order [0] where the tensor f32 [2] in order [0] is asked for",
            ),
            (
                refused("again", &[own(&wide)], &[]),
                "case 0 of `again`, inputs 0: the tensor i32[5, 1] in order [0, 1] where the tensor i32 at most [4, 3] in order [0, 1] is asked for",
            ),
        ] {
            assert_eq!(error, want);
        }
        assert!(matches!(BundleBuilder::new(b"no program"), Err(BuildError::Findings(_))));
    }
}
