use edgepack_format::spec::CompileSpecs;

#[derive(CompileSpecs)]
struct Fields {
    size: usize,
    texts: Vec<String>,
    maybe: Option<char>,
    #[spec(default = "seven")]
    number: u32,
}

fn main() {}
