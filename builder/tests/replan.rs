//! Planned memory against the reference exporter's: every program of the corpus is planned again, needs no more bytes than
//! its file says, and every value an instruction reads is still there.
//!
//! The judge shares nothing with the planner. It knows what a delegate writes from its payload. It runs the old and the new plan side by side, with a tag for every byte
//! instead of its value, along random paths through the jumps; where the old plan gives an instruction the bytes that
//! were written for it, the new one must too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

mod payload;

use edgepack_builder::plan::{ReplanOptions, Strategy, lifetimes, replan};
use edgepack_format::operators::lookup_overload;
use edgepack_format::pte::{
    AllocationDetails, Chain, DelegateCall, EValue, ExecutionPlan, Instruction, InstructionArguments, KernelTypes,
    Program, ProgramRef, Tensor,
};
use edgepack_format::row::Rows;
use edgepack_format::scalar::ScalarType;

/// The programs to plan: those of the repository, and those of a larger corpus where there is one.
fn programs() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus");
    let roots = [Some(own), std::env::var_os("EDGEPACK_CORPUS").map(PathBuf::from)];
    let mut found = Vec::new();
    for root in roots.into_iter().flatten() {
        for folder in ["models", "pt2", "ops", "ops_xnnpack", "llm"] {
            collect(&root.join(folder), &mut found);
        }
    }
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pte") {
            found.push(path);
        }
    }
}

/// Bytes with tags, and what was last written to each value.
struct Machine {
    arenas: Vec<Vec<u32>>,
    written: Vec<Option<Vec<u32>>>,
    places: Vec<Option<(usize, usize, usize)>>,
}

const CELL: usize = 4;

impl Machine {
    fn new(plan: &ExecutionPlan<'_>, values: &[Option<KernelTypes<'_>>]) -> Self {
        let sizes = plan.non_const_buffer_sizes.as_ref().unwrap();
        let places = values.iter().map(|value| match value {
            Some(KernelTypes::Tensor(tensor)) => place(tensor),
            _ => None,
        });
        Machine {
            arenas: sizes.iter().map(|size| vec![0; (size as usize).div_ceil(CELL)]).collect(),
            written: vec![None; values.len()],
            places: places.collect(),
        }
    }

    fn write(&mut self, value: usize, tag: impl Fn(usize) -> u32) {
        if let Some((memory, start, len)) = self.places[value] {
            let tags: Vec<u32> = (0..len).map(tag).collect();
            self.arenas[memory][start..start + len].copy_from_slice(&tags);
            self.written[value] = Some(tags);
        }
    }

    fn read(&self, value: usize) -> Option<&[u32]> {
        self.places[value].map(|(memory, start, len)| &self.arenas[memory][start..start + len])
    }

    /// Returns whether the bytes of a value are those last written for it.
    fn intact(&self, value: usize) -> bool {
        self.read(value).is_some_and(|now| self.written[value].as_deref() == Some(now))
    }
}

fn place(tensor: &Tensor<'_>) -> Option<(usize, usize, usize)> {
    let at = tensor.allocation_info?;
    let count: usize = tensor.sizes.as_ref()?.iter().map(|size| size as usize).product();
    let bytes = count * tensor.scalar_type.size()?;
    // Cells are those the tensor reaches, so that one that is smaller than a cell counts.
    let start = at.memory_offset() as usize / CELL;
    let end = (at.memory_offset() as usize + bytes).div_ceil(CELL);
    Some((at.memory_id as usize, start, end - start))
}

struct Judge<'p> {
    values: Vec<Option<KernelTypes<'p>>>,
    old: Machine,
    new: Machine,
    next: u32,
    random: u64,
    reads: usize,
    /// Values that have some of their rows in this run.
    filled: BTreeSet<i32>,
    /// By delegate: the arguments it writes, where its payload says so.
    results: &'p [Option<BTreeSet<usize>>],
    name: String,
}

impl Judge<'_> {
    fn tensors(&self, value: i32) -> Vec<usize> {
        match &self.values[value as usize] {
            Some(KernelTypes::Tensor(_)) => vec![value as usize],
            Some(KernelTypes::TensorList(list)) => list.items.as_ref().unwrap().iter().map(|v| v as usize).collect(),
            Some(KernelTypes::OptionalTensorList(list)) => {
                list.items.as_ref().unwrap().iter().filter(|v| *v >= 0).map(|v| v as usize).collect()
            }
            _ => Vec::new(),
        }
    }

    fn write(&mut self, value: i32) {
        for value in self.tensors(value) {
            let tag = self.next;
            self.next += 1 << 12;
            let mixed = |cell: usize| tag.wrapping_add(cell as u32).wrapping_mul(2_654_435_761) | 1;
            self.old.write(value, mixed);
            self.new.write(value, mixed);
        }
    }

    /// Reads of bytes that another value wrote in the old plan too do not count.
    fn read(&mut self, value: i32, what: &str) {
        for value in self.tensors(value) {
            if self.old.written[value].is_none() {
                // A view without an instruction of its own: it reads what is there.
                let (old, new) = (self.old.read(value), self.new.read(value));
                if old.is_some_and(|tags| tags.iter().all(|tag| *tag != 0)) {
                    self.reads += 1;
                    assert!(old == new, "{}: {what} reads value {value}, a view", self.name);
                }
            } else if self.old.intact(value) {
                self.reads += 1;
                assert!(self.new.intact(value), "{}: {what} reads value {value}, which was overwritten", self.name);
            }
        }
    }

    fn copy(&mut self, from: i32, to: i32) {
        let (Some(&from), Some(&to)) = (self.tensors(from).first(), self.tensors(to).first()) else { return };
        for machine in [&mut self.old, &mut self.new] {
            if let Some(tags) = machine.read(from).map(<[u32]>::to_vec) {
                machine.write(to, |cell| tags.get(cell).copied().unwrap_or(0));
            }
        }
    }

    fn toss(&mut self) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 62 == 0
    }

    fn run(&mut self, plan: &ExecutionPlan<'_>) {
        self.filled.clear();
        for value in plan.inputs.iter().flat_map(|list| list.iter()) {
            self.write(value);
        }
        let operators: Vec<_> = plan.operators.iter().flat_map(|rows| rows.iter()).map(Result::unwrap).collect();
        for chain in plan.chains.as_ref().unwrap().iter() {
            let code: Vec<_> = chain.unwrap().instructions.unwrap().iter().map(Result::unwrap).collect();
            let (mut at, mut steps) = (0, 0);
            while at < code.len() && steps < 20 * code.len() {
                steps += 1;
                match code[at].instr_args.as_ref().unwrap() {
                    InstructionArguments::KernelCall(call) => {
                        let row = &operators[call.op_index as usize];
                        let (name, overload) = (row.name.as_deref().unwrap(), row.overload.as_deref().unwrap_or(""));
                        let args: Vec<i32> = call.args.as_ref().unwrap().iter().collect();
                        self.call(name, overload, &args);
                    }
                    InstructionArguments::DelegateCall(call) => {
                        let args: Vec<i32> = call.args.as_ref().unwrap().iter().collect();
                        // Where no schema says, a value that was never written can only be an output.
                        let seen =
                            |judge: &Self, arg: i32| judge.tensors(arg).iter().any(|v| judge.old.written[*v].is_some());
                        let known = &self.results[call.delegate_index as usize];
                        let (outputs, inputs): (Vec<_>, Vec<_>) =
                            args.iter().copied().enumerate().partition(|&(place, arg)| match known {
                                Some(known) => known.contains(&place),
                                None => !seen(self, arg),
                            });
                        inputs.iter().for_each(|&(_, arg)| self.read(arg, "a delegate"));
                        outputs.iter().for_each(|&(_, arg)| self.write(arg));
                    }
                    InstructionArguments::MoveCall(call) => {
                        self.read(call.move_from, "a move");
                        self.copy(call.move_from, call.move_to);
                    }
                    InstructionArguments::JumpFalseCall(call) => {
                        self.read(call.cond_value_index, "a jump");
                        let jump = match &self.values[call.cond_value_index as usize] {
                            // An exporter's unconditional jump.
                            Some(KernelTypes::Bool(value)) if call.destination_instruction > at as i32 => {
                                !value.bool_val || self.toss()
                            }
                            _ => self.toss(),
                        };
                        if jump {
                            at = call.destination_instruction as usize;
                            continue;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        for value in plan.outputs.iter().flat_map(|list| list.iter()) {
            self.read(value, "the caller");
        }
    }

    fn call(&mut self, name: &str, overload: &str, args: &[i32]) {
        if name == "executorch_prim::et_view" {
            self.read(args[0], name);
            return self.copy(args[0], args[2]);
        }
        if name == "aten::copy_" {
            self.read(args[1], name);
            return self.write(args[0]);
        }
        if name == "executorch_prim::et_copy_index" {
            self.read(args[1], name);
            // Rows come one by one: those of this run matter, not those of the last.
            if self.filled.contains(&args[0]) {
                self.read(args[0], name);
            }
            self.filled.insert(args[0]);
            return self.write(args[0]);
        }
        let schema =
            lookup_overload(name, overload).map(|text| edgepack_format::operators::Schema::parse(text).unwrap());
        let outs = |place: usize| match &schema {
            Some(schema) => schema.args().get(place).is_none_or(|arg| arg.is_out()),
            None => place + 2 >= args.len(),
        };
        for (_, &value) in args.iter().enumerate().filter(|(place, _)| !outs(*place)) {
            self.read(value, name);
        }
        let mutated = |place: usize| schema.as_ref().is_some_and(|schema| schema.is_mutated(place));
        let count = schema.as_ref().map_or(args.len(), |schema| schema.args().len());
        for (_, &value) in
            args.iter().enumerate().filter(|(place, _)| *place < count && (outs(*place) || mutated(*place)))
        {
            self.write(value);
        }
    }
}

fn values<'a>(plan: &ExecutionPlan<'a>) -> Vec<Option<KernelTypes<'a>>> {
    plan.values.as_ref().unwrap().iter().map(|row| row.unwrap().val).collect()
}

/// Runs both plans along several paths, twice each, so that state is looked at in the second run.
fn compare(name: &str, results: &[Option<BTreeSet<usize>>], old: &ExecutionPlan<'_>, new: &ExecutionPlan<'_>) -> usize {
    let (before, after) = (values(old), values(new));
    let mut reads = 0;
    for seed in 0..6 {
        let (old_machine, new_machine) = (Machine::new(old, &before), Machine::new(new, &after));
        let name = format!("{name}, path {seed}");
        let values = before.clone();
        let mut judge = Judge {
            values,
            old: old_machine,
            new: new_machine,
            next: 1,
            random: seed,
            reads: 0,
            filled: BTreeSet::new(),
            results,
            name,
        };
        for (index, value) in before.iter().enumerate() {
            // What has a first value, or a name, is state.
            if let Some(KernelTypes::Tensor(tensor)) = value
                && (tensor.data_buffer_idx > 0 || tensor.extra_tensor_info.is_some())
            {
                judge.write(index as i32);
            }
        }
        judge.run(old);
        judge.run(old);
        reads += judge.reads;
    }
    reads
}

#[test]
fn no_program_needs_more_than_its_file_says() {
    let (mut files, mut arenas, mut before, mut after, mut smaller, mut reads) = (0, 0, 0u64, 0u64, 0, 0);
    for path in programs() {
        let bytes = fs::read(&path).unwrap();
        let Ok(program) = ProgramRef::reopen(&bytes) else { continue };
        let name = path.display().to_string();
        for strategy in [Strategy::Greedy, Strategy::BestFit, Strategy::Smallest] {
            let mut row: Program<'_> = program.program().clone();
            let changes = replan(&mut row, &ReplanOptions::default().strategy(strategy)).unwrap();
            for change in &changes {
                assert!(change.after <= change.before, "{name}: {change:?}");
            }
            let old_plans = program.plans();
            let plans = old_plans.iter().zip(row.execution_plan.as_ref().unwrap().iter());
            for (old, new) in plans.map(|(old, new)| (old.unwrap(), new.unwrap())) {
                let delegates = old.delegates.iter().flat_map(Rows::iter);
                let results: Vec<_> =
                    delegates.map(|delegate| payload::results(&bytes, &program, &delegate.unwrap())).collect();
                reads += compare(&format!("{name} {strategy:?}"), &results, &old, &new);
            }
            if strategy == Strategy::Smallest {
                files += 1;
                arenas += changes.len();
                before += changes.iter().map(|change| change.before).sum::<u64>();
                after += changes.iter().map(|change| change.after).sum::<u64>();
                smaller += changes.iter().filter(|change| change.after < change.before).count();
            }
        }
    }
    println!(
        "{files} programs, {arenas} memories, {smaller} smaller: {before} bytes before, {after} now; {reads} reads"
    );
    assert!(files > 10 && reads > 1000 && smaller > 0);
}

#[test]
fn the_judge_notices_an_overwritten_value() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models/mlp_portable.pte");
    let bytes = fs::read(path).unwrap();
    let old = ProgramRef::reopen(&bytes).unwrap().plans().get(0).unwrap();
    let mut new = old.clone();
    // All tensors at the start of the memory.
    for row in new.values.as_mut().unwrap().to_mut().unwrap() {
        if let Some(KernelTypes::Tensor(tensor)) = &mut row.val
            && let Some(at) = &mut tensor.allocation_info
        {
            at.memory_offset_low = 0;
        }
    }
    assert!(compare("as it is", &[], &old, &old) > 0);
    assert!(std::panic::catch_unwind(|| compare("broken", &[], &old, &new)).is_err());
}

/// Calls of one delegate, a tensor of 16 floats or fewer per value: its offset and how many, and the arguments of each call.
fn delegated(places: &[(u32, i32)], calls: &[&[i32]], inputs: &[i32], outputs: &[i32]) -> ExecutionPlan<'static> {
    let tensor = |&(offset, size): &(u32, i32)| Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![size].into()),
        dim_order: Some(vec![0].into()),
        allocation_info: Some(AllocationDetails { memory_id: 1, memory_offset_low: offset, memory_offset_high: 0 }),
        ..Tensor::default()
    };
    let values: Vec<_> = places.iter().map(|at| EValue { val: Some(KernelTypes::Tensor(tensor(at))) }).collect();
    let calls = calls.iter().map(|args| {
        let call = DelegateCall { delegate_index: 0, args: Some(args.to_vec().into()) };
        Instruction { instr_args: Some(InstructionArguments::DelegateCall(call)) }
    });
    let chain = Chain { instructions: Some(calls.collect::<Vec<_>>().into()), ..Chain::default() };
    ExecutionPlan {
        values: Some(values.into()),
        inputs: Some(inputs.to_vec().into()),
        outputs: Some(outputs.to_vec().into()),
        chains: Some(vec![chain].into()),
        non_const_buffer_sizes: Some(vec![0, 1024].into()),
        ..ExecutionPlan::default()
    }
}

fn lasts(plan: &ExecutionPlan<'_>) -> Vec<Option<(u32, u32)>> {
    let all = lifetimes(plan).unwrap();
    all.into_iter().map(|lifetime| lifetime.map(|lifetime| (lifetime.first, lifetime.last))).collect()
}

#[test]
fn a_delegate_may_read_a_view_without_an_instruction() {
    // 1 is written, then read as 2, which no instruction made; 3 is a result.
    let places = [(0, 16), (64, 16), (64, 16), (128, 16)];
    let plan = delegated(&places, &[&[0, 1], &[2, 3]], &[0], &[3]);
    assert_eq!(lasts(&plan), [Some((0, 1)), Some((1, 2)), Some((2, 2)), Some((2, 3))]);

    // The same where the view is of a part, and of what two wrote.
    let places = [(0, 16), (64, 8), (96, 8), (80, 8), (128, 16)];
    let plan = delegated(&places, &[&[0, 1], &[0, 2], &[3, 4]], &[0], &[4]);
    assert_eq!(lasts(&plan), [Some((0, 2)), Some((1, 3)), Some((2, 3)), Some((3, 3)), Some((3, 4))]);

    // A result at a place that is free again is not a view, whether it is the last argument or has more bytes.
    let places = [(0, 16), (64, 16), (0, 16)];
    let plan = delegated(&places, &[&[0, 1], &[1, 2]], &[0], &[2]);
    assert_eq!(lasts(&plan), [Some((0, 1)), Some((1, 2)), Some((2, 3))]);
    let places = [(16, 8), (64, 16), (0, 16), (128, 16)];
    let plan = delegated(&places, &[&[0, 1], &[1, 2, 3]], &[0], &[3]);
    assert_eq!(lasts(&plan), [Some((0, 1)), Some((1, 2)), Some((2, 2)), Some((2, 3))]);
}

#[test]
fn a_view_of_overwritten_bytes_is_of_the_last_writer() {
    // 1 and 2 are written at overlapping places, 1 first: 3 has the place of 1 and shows bytes of 2.
    let places = [(0, 16), (64, 16), (32, 24), (64, 16), (192, 16)];
    let plan = delegated(&places, &[&[0, 1], &[0, 2], &[3, 4]], &[0], &[4]);
    assert_eq!(lasts(&plan)[2], Some((2, 3)));
}
