pub struct Pair<T: Element, const N: usize> where T: Pod {
    left: [T; N],
    right: Vec<T>,
}
