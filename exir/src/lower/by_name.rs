//! Options that are chosen by name.

use std::fmt;
use std::sync::Arc;

/// A function from a name to what is asked for there.
type Function<T> = dyn Fn(&str) -> Option<T> + Send + Sync;

/// Says something about names: for each an answer, or `None` where nothing is asked for.
pub struct ByName<T>(Option<Arc<Function<T>>>);

impl<T> ByName<T> {
    /// Wraps a function that answers by name.
    pub fn new(answer: impl Fn(&str) -> Option<T> + Send + Sync + 'static) -> Self {
        ByName(Some(Arc::new(answer)))
    }

    /// The answer for a name.
    pub fn of(&self, name: &str) -> Option<T> {
        self.0.as_ref().and_then(|answer| answer(name))
    }
}

impl<T: Clone + Send + Sync + 'static> ByName<T> {
    /// One answer for every name.
    pub fn all(answer: T) -> Self {
        ByName::new(move |_| Some(answer.clone()))
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName(None)
    }
}

impl<T> Clone for ByName<T> {
    fn clone(&self) -> Self {
        ByName(self.0.clone())
    }
}

impl<T> fmt::Debug for ByName<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ByName(…)" } else { "ByName(nothing)" })
    }
}
