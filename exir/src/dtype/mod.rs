//! Combinations of element types that the operators of the Edge dialect accept.
//!
//! A [`Table`] has rows per operator; a row gives each argument and result an alias, which is one element type out of a
//! set in every place where it occurs. Rows are alternatives. [`Table::built_in`] is the one that exporters check
//! against; [`Table::parse`] reads any other in the language exporters write it in.
//!
//! Invariant: all rows of an operator have the same names, and every alias of a row has a set.

mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use edgepack_format::operators::{self, Argument as Parameter, ArgumentKind, Schema};
use edgepack_format::scalar::ScalarType;

pub use yaml::DslError;

/// The built-in table: numbered sets of element types, then operators with the names of their columns and their rows.
const ROWS: &str = include_str!("rows.txt");

/// Every element type the tables know, in their order. They call them what PyTorch calls them in C++.
pub const KNOWN: [ScalarType; 13] = [
    ScalarType::BOOL,
    ScalarType::BYTE,
    ScalarType::CHAR,
    ScalarType::SHORT,
    ScalarType::INT,
    ScalarType::LONG,
    ScalarType::HALF,
    ScalarType::BFLOAT16,
    ScalarType::FLOAT,
    ScalarType::DOUBLE,
    ScalarType::UINT16,
    ScalarType::COMPLEX_FLOAT,
    ScalarType::COMPLEX_DOUBLE,
];

/// Returns the name of an element type in a table.
pub fn name(scalar_type: ScalarType) -> Option<&'static str> {
    KNOWN.contains(&scalar_type).then(|| scalar_type.names()).flatten().map(|names| names.aten)
}

pub(crate) fn by_name(name: &str) -> Option<ScalarType> {
    ScalarType::called(|names| names.aten == name).filter(|found| KNOWN.contains(found))
}

/// One column of one row: its alias, and what that may be.
#[derive(Clone, PartialEq, Debug)]
struct Cell {
    alias: usize,
    set: Vec<ScalarType>,
}

/// Constraint on the element types of one operator.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    names: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// Constraints by the full name of the operator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    operators: BTreeMap<String, Constraint>,
}

/// A column of an operator: an argument or result that is a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name of the column: `__ret_0` and so on for results without one.
    pub name: String,
    /// True if the column may be left out.
    pub optional: bool,
}

/// Observed element types of a call: each column with its element type, `None` if that is not known.
pub type Observed<'o> = [(&'o str, Option<ScalarType>)];

impl Table {
    /// The table that exporters check against.
    pub fn built_in() -> &'static Table {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| built_in(ROWS).unwrap_or_default())
    }

    /// Reads a table in the language that exporters write it in.
    pub fn parse(text: &str) -> Result<Self, DslError> {
        yaml::parse(text)
    }

    /// Returns the number of operators.
    pub fn len(&self) -> usize {
        self.operators.len()
    }

    /// Returns whether the table has no operators.
    pub fn is_empty(&self) -> bool {
        self.operators.is_empty()
    }

    /// Returns the constraint of an operator; `None` if its element types only have to be known ones.
    pub fn constraint(&self, full_name: &str) -> Option<&Constraint> {
        self.operators.get(full_name)
    }

    /// The operators, by full name.
    pub fn operators(&self) -> impl Iterator<Item = (&str, &Constraint)> {
        self.operators.iter().map(|(name, constraint)| (name.as_str(), constraint))
    }

    /// Checks a call against the rows of its operator; the error explains the mismatch.
    pub fn check(&self, schema: &Schema<'_>, observed: &Observed<'_>) -> Result<(), String> {
        match self.constraint(schema.full_name()) {
            Some(constraint) => constraint.check(&columns(schema), observed),
            None => match observed.iter().find(|(_, seen)| seen.is_some_and(|seen| name(seen).is_none())) {
                Some((column, Some(seen))) => Err(format!("`{column}` is {seen}, which the dialect does not have")),
                _ => essential(&columns(schema), observed),
            },
        }
    }

    /// Rows that name a column no schema of the operator has, or leave one out.
    pub fn mismatches(&self, schema: &Schema<'_>) -> Vec<String> {
        let Some(constraint) = self.constraint(schema.full_name()) else { return Vec::new() };
        let missing = columns(schema).into_iter().filter(|column| !constraint.names.contains(&column.name));
        missing.map(|column| column.name).collect()
    }
}

/// The tensors of a schema, arguments first.
pub fn columns(schema: &Schema<'_>) -> Vec<Column> {
    let tensor = |parameter: &&Parameter<'_>| {
        // Lists whose items may be missing are not looked at.
        parameter.kind == ArgumentKind::Tensor && !parameter.list.is_some_and(|list| list.optional_items)
    };
    let argument = |parameter: &Parameter<'_>| Column { name: parameter.name.to_owned(), optional: parameter.optional };
    let mut found: Vec<Column> = schema.args().iter().filter(tensor).map(argument).collect();
    for (index, result) in schema.returns().iter().filter(tensor).enumerate() {
        let name = if result.name.is_empty() { format!("__ret_{index}") } else { result.name.to_owned() };
        found.push(Column { name, optional: false });
    }
    found
}

fn essential(columns: &[Column], observed: &Observed<'_>) -> Result<(), String> {
    match columns.iter().find(|column| !column.optional && !observed.iter().any(|(name, _)| *name == column.name)) {
        Some(column) => Err(format!("`{}` is not a tensor", column.name)),
        None => Ok(()),
    }
}

impl Constraint {
    /// The columns it has, those that are no tensors included.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of alternatives.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The element types a column may have in any row.
    pub fn allowed_types(&self, column: &str) -> Vec<ScalarType> {
        self.allowed_given(column, &[])
    }

    /// The element types a column may have when others have theirs.
    pub fn allowed_given(&self, column: &str, given: &Observed<'_>) -> Vec<ScalarType> {
        let others: Vec<_> = given.iter().filter(|(name, _)| *name != column).copied().collect();
        let allowed = |candidate: &ScalarType| {
            let with: Vec<_> = others.iter().copied().chain([(column, Some(*candidate))]).collect();
            self.rows.iter().any(|row| self.accepts(row, &with))
        };
        KNOWN.iter().copied().filter(allowed).collect()
    }

    fn cell<'r>(&self, row: &'r [Cell], name: &str) -> Option<&'r Cell> {
        row.get(self.names.iter().position(|known| known == name)?)
    }

    fn accepts(&self, row: &[Cell], observed: &Observed<'_>) -> bool {
        let mut bound: BTreeMap<usize, ScalarType> = BTreeMap::new();
        observed.iter().all(|(name, seen)| match (self.cell(row, name), seen) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(cell), Some(seen)) => cell.set.contains(seen) && *bound.entry(cell.alias).or_insert(*seen) == *seen,
        })
    }

    fn check(&self, columns: &[Column], observed: &Observed<'_>) -> Result<(), String> {
        if let Some((name, _)) = observed.iter().find(|(name, _)| !self.names.iter().any(|known| known == name)) {
            return Err(format!("`{name}` is not among what is asked of the operator"));
        }
        essential(columns, observed)?;
        if self.rows.iter().any(|row| self.accepts(row, observed)) {
            return Ok(());
        }
        let shown: Vec<String> =
            observed.iter().filter_map(|(column, seen)| Some(format!("{column}: {}", (*seen)?))).collect();
        // The first column for which the others leave something else says most.
        let hint = observed.iter().find_map(|(column, seen)| {
            let allowed = self.allowed_given(column, observed);
            let names: Vec<String> = allowed.iter().map(ScalarType::to_string).collect();
            (seen.is_some() && !names.is_empty()).then(|| format!("; `{column}` could be {}", names.join(", ")))
        });
        Err(format!("{} do not go together{}", shown.join(", "), hint.unwrap_or_default()))
    }

    /// Every combination of element types of these columns that some row accepts.
    pub fn combinations(&self, columns: &[Column]) -> BTreeSet<Vec<ScalarType>> {
        let mut all = BTreeSet::new();
        for row in &self.rows {
            let cells: Vec<&Cell> = columns.iter().filter_map(|column| self.cell(row, &column.name)).collect();
            let mut partial: Vec<(BTreeMap<usize, ScalarType>, Vec<ScalarType>)> = vec![Default::default()];
            for cell in cells {
                let mut next = Vec::new();
                for (bound, types) in &partial {
                    let choices = match bound.get(&cell.alias) {
                        Some(known) => vec![*known],
                        None => cell.set.clone(),
                    };
                    for choice in choices.into_iter().filter(|choice| cell.set.contains(choice)) {
                        let (mut bound, mut types) = (bound.clone(), types.clone());
                        bound.insert(cell.alias, choice);
                        types.push(choice);
                        next.push((bound, types));
                    }
                }
                partial = next;
            }
            all.extend(partial.into_iter().map(|(_, types)| types));
        }
        all
    }
}

/// Gives each operator of the table of operators the rows that it names.
fn built_in(text: &str) -> Option<Table> {
    let rows = named_rows(text)?;
    let named = operators::all().filter_map(|known| Some((known.full_name().to_owned(), known.dtype_rows()?)));
    let operators = named.map(|(name, key)| Some((name, rows.get(key)?.clone()))).collect::<Option<_>>()?;
    Some(Table { operators })
}

/// Reads the table of rows: what is asked of operators, by the name that operators give it.
fn named_rows(text: &str) -> Option<BTreeMap<&str, Constraint>> {
    let mut sets: Vec<Vec<ScalarType>> = Vec::new();
    let mut found: Vec<(&str, Constraint)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        match words.next()? {
            "set" => {
                words.next()?;
                sets.push(words.map(by_name).collect::<Option<_>>()?);
            }
            "rows" => {
                let name = words.next()?;
                found.push((name, Constraint { names: words.map(str::to_owned).collect(), rows: Vec::new() }));
            }
            first => {
                let cell = |word: &str| {
                    let (alias, set) = word.split_once('.')?;
                    Some(Cell { alias: alias.parse().ok()?, set: sets.get(set.parse::<usize>().ok()?)?.clone() })
                };
                let row = std::iter::once(first).chain(words).map(cell).collect::<Option<Vec<_>>>()?;
                found.last_mut()?.1.rows.push(row);
            }
        }
    }
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::OpName;
    use crate::operators::Operators;

    #[test]
    fn the_built_in_table_is_whole() {
        let table = Table::built_in();
        assert_eq!(table.len(), 141);
        let rows = named_rows(ROWS).unwrap();
        let named: BTreeSet<&str> = operators::all().filter_map(operators::Operator::dtype_rows).collect();
        assert!(named.iter().eq(rows.keys()), "rows that no operator names, or that are not there");
        assert_eq!(table.operators().map(|(_, constraint)| constraint.rows()).sum::<usize>(), 1766);
        let operators = Operators::new();
        let mut sum = 0;
        for (name, constraint) in table.operators() {
            let schema = operators.schema(&OpName::parse(name).unwrap()).unwrap_or_else(|| panic!("{name}"));
            assert!(table.mismatches(&schema).is_empty(), "{name}");
            sum += constraint.combinations(&columns(&schema)).len();
        }
        assert_eq!(sum, 4518);
    }

    #[test]
    fn counts_of_single_operators() {
        let operators = Operators::new();
        for (name, count) in [
            ("aten::add.Tensor", 110),
            ("aten::where.self", 220),
            ("aten::convolution", 99),
            ("aten::cat", 11),
            ("aten::embedding", 22),
            ("aten::sum.dim_IntList", 110),
        ] {
            let schema = operators.schema(&OpName::parse(name).unwrap()).unwrap();
            let constraint = Table::built_in().constraint(name).unwrap();
            assert_eq!(constraint.combinations(&columns(&schema)).len(), count, "{name}");
        }
    }

    #[test]
    fn sigmoid_is_as_the_specification_says() {
        let text = "- func: aten::sigmoid\n  namespace: edge\n  inherits: aten::sigmoid\n  type_alias:\n    \
                    T0: [Bool, Byte, Char, Int, Long, Short]\n    T1: [Double]\n    T2: [Float]\n  type_constraint:\n  \
                    - self: T0\n    __ret_0: T2\n  - self: T1\n    __ret_0: T1\n  - self: T2\n    __ret_0: T2\n";
        let table = Table::parse(text).unwrap();
        let sigmoid = table.constraint("aten::sigmoid").unwrap();
        assert_eq!(sigmoid.allowed_types("self").len(), 8);
        assert_eq!(sigmoid.allowed_types("__ret_0"), [ScalarType::FLOAT, ScalarType::DOUBLE]);
        let given = [("self", Some(ScalarType::DOUBLE))];
        assert_eq!(sigmoid.allowed_given("__ret_0", &given), [ScalarType::DOUBLE]);
    }

    #[test]
    fn calls_are_checked() {
        let operators = Operators::new();
        let check = |name: &str, observed: &Observed<'_>| {
            Table::built_in().check(&operators.schema(&OpName::parse(name).unwrap()).unwrap(), observed)
        };
        let (float, long) = (Some(ScalarType::FLOAT), Some(ScalarType::LONG));
        assert_eq!(check("aten::relu", &[("self", float), ("__ret_0", float)]), Ok(()));
        assert_eq!(check("aten::relu", &[("self", None), ("__ret_0", float)]), Ok(()));
        let error = check("aten::relu", &[("self", float), ("__ret_0", long)]).unwrap_err();
        assert!(error.contains("`self` could be i64"), "{error}");
        assert_eq!(check("aten::relu", &[("__ret_0", float)]).unwrap_err(), "`self` is not a tensor");
        let strange = Some(ScalarType::UINT64);
        assert!(check("aten::maximum", &[("self", strange), ("other", strange), ("__ret_0", strange)]).is_err());
        assert_eq!(check("aten::maximum", &[("self", float), ("other", long), ("__ret_0", float)]), Ok(()));
    }
}
