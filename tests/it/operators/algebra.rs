//! Properties of every operator, whatever it computes: element types agree, outputs with room take the sizes they need,
//! and the order of memory changes nothing.

use edgepack_executor::call::{Arg, OwnedTensor};
use edgepack_format::operators::Schema;
use edgepack_format::scalar::ScalarType;
use edgepack_kernels::registry;
use edgepack_tests::catalogue::{READS_MEMORY, layouts, types};
use edgepack_tests::examples::{Answer, DTYPES, all, dtype_name, logical, numbers, schema_text, tolerance};

#[test]
fn dim_orders_change_no_element() {
    let registry = registry();
    let mut wrong = Vec::new();
    for example in &all() {
        let operator = registry.find(&example.name).unwrap();
        wrong.extend(DTYPES.iter().filter_map(|dtype| layouts(operator, example, *dtype).err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Operators whose results depend on the width of the type: what is quantised with `%` as its range, and complements.
fn depends_on_width(name: &str) -> bool {
    name.starts_with("quantized_decomposed::choose") || name == "aten::bitwise_not.out"
}

#[test]
fn narrow_types_agree_with_wide_ones() {
    let registry = registry();
    let mut wrong = Vec::new();
    for example in all() {
        if READS_MEMORY.contains(&&*example.name) || depends_on_width(&example.name) {
            continue;
        }
        let operator = registry.find(&example.name).unwrap();
        let text = schema_text(operator);
        let schema = Schema::parse(&text).unwrap();
        let run = |dtype| {
            let args = example.args(&schema, dtype)?;
            match example.call(operator, &schema, &args).ok()? {
                Answer::Tensors(outs) => Some(outs.iter().map(numbers).collect::<Vec<_>>()),
                Answer::Number(number) => Some(vec![vec![number.to_f64()]]),
            }
        };
        for dtype in types(operator, &[&example]) {
            let wide = match dtype {
                dtype if dtype.is_integral() => ScalarType::LONG,
                dtype if dtype.is_complex() => ScalarType::COMPLEX_DOUBLE,
                dtype if dtype.is_floating() => ScalarType::DOUBLE,
                _ => continue,
            };
            let (Some(have), Some(want)) = (run(dtype), run(wide)) else { continue };
            let close = |have: f64, want: f64| {
                have == want
                    || have.is_nan() && want.is_nan()
                    || (have - want).abs() <= tolerance(dtype) * (1.0 + want.abs())
            };
            // An unsigned type wraps where the example goes below zero.
            let wraps = |want: f64| dtype.is_integral() && want < 0.0 && !is_signed(dtype);
            for (have, want) in have.iter().zip(&want) {
                let agree = have.len() == want.len()
                    && have.iter().zip(want).all(|(&have, &want)| wraps(want) || close(have, want));
                if !agree {
                    let (name, dtype) = (&example.name, dtype_name(dtype));
                    wrong.push(format!("line {}: {name} with {dtype}: {have:?} is not {want:?}", example.line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_signed(dtype: ScalarType) -> bool {
    matches!(dtype, ScalarType::CHAR | ScalarType::SHORT | ScalarType::INT | ScalarType::LONG)
}

#[test]
fn outputs_with_room_take_the_sizes_they_need() {
    let registry = registry();
    let mut wrong = Vec::new();
    for example in all() {
        let operator = registry.find(&example.name).unwrap();
        let text = schema_text(operator);
        let schema = Schema::parse(&text).unwrap();
        let dtypes = types(operator, &[&example]);
        let Some(dtype) = dtypes.iter().copied().max_by_key(|dtype| *dtype == ScalarType::FLOAT) else { continue };
        let Some(args) = example.args(&schema, dtype) else { continue };
        let Ok(Answer::Tensors(plain)) = example.call(operator, &schema, &args) else { continue };
        let resized = |by: &dyn Fn(usize) -> usize, dynamic: bool| -> Vec<Arg> {
            let resize = |tensor: &OwnedTensor| {
                let sizes: Vec<usize> = tensor.layout().sizes().iter().map(|&size| by(size)).collect();
                let resized = OwnedTensor::zeros(tensor.layout().scalar_type(), &sizes);
                if dynamic { resized.dynamic() } else { resized }
            };
            let outs: Vec<usize> = schema.outs().collect();
            let each = |(index, arg): (usize, &Arg)| match arg {
                Arg::Tensor(tensor) if outs.contains(&index) => Arg::Tensor(resize(tensor)),
                Arg::Tensors(items) if outs.contains(&index) => {
                    Arg::Tensors(items.iter().map(|item| item.as_ref().map(resize)).collect())
                }
                other => other.clone(),
            };
            args.iter().enumerate().map(each).collect()
        };
        let line = example.line;
        // Their result is a placeholder without a size of its own.
        if example.name.starts_with("llama::update_cache") {
            continue;
        }
        match example.call(operator, &schema, &resized(&|size| size + 2, true)) {
            // Where rows are summed nothing belongs in the fourth output, whatever its size.
            _ if example.name == "aten::_embedding_bag.out" => {}
            Ok(Answer::Tensors(roomy)) => {
                let same = |(a, b): (&OwnedTensor, &OwnedTensor)| {
                    a.layout().sizes() == b.layout().sizes()
                        && (logical(a) == logical(b) || READS_MEMORY.contains(&&*example.name))
                };
                if roomy.len() != plain.len() || !roomy.iter().zip(&plain).all(same) {
                    wrong.push(format!("line {line}: {}: with room {roomy:?}, else {plain:?}", example.name));
                }
            }
            other => wrong.push(format!("line {line}: {}: with room {other:?}", example.name)),
        }
        // Outputs that are too small are refused, never cut.
        let cut = plain.iter().any(|out| out.layout().sizes().iter().any(|&size| size > 1));
        if cut && schema.outs().next().is_some() {
            for dynamic in [false, true] {
                if let Ok(answer) = example.call(operator, &schema, &resized(&|size| size.saturating_sub(1), dynamic)) {
                    wrong.push(format!("line {line}: {}: in too little room {answer:?}", example.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
