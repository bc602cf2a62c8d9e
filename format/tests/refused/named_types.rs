use edgepack_format::named::NamedData;

struct Plain;

#[derive(NamedData)]
struct Fields {
    truth: bool,
    text: String,
    plain: Plain,
    lists: Vec<Vec<f32>>,
    maybe: Vec<Option<f32>>,
}

fn main() {}
