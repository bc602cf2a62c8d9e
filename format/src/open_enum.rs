//! Enumerations of the wire that stay open: a number without a name yet is retained, shown and written back.

/// Declares a newtype over an integer with named constants.
///
/// The type reads from and writes to a table slot, prints its name (`Name(7)` when the number has none), and is a
/// string (or the bare number) in JSON.
#[macro_export]
macro_rules! open_enum {
    (@show $name:ident) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }
    };
    // Its words are those of a function instead.
    (@show $name:ident $shown:path) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $shown(*self, f)
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident($repr:ty) default $default:ident $(shown by $shown:path)? {
        $($(#[$vmeta:meta])* $variant:ident = $value:expr,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        #[allow(missing_docs)]
        impl $name {
            $($(#[$vmeta])* pub const $variant: Self = Self($value);)*

            /// Every named value, in order.
            pub const NAMED: &'static [(&'static str, Self)] = &[$((stringify!($variant), Self::$variant)),*];

            /// The name of this number, if it has one.
            pub fn name(self) -> ::core::option::Option<&'static str> {
                Self::NAMED.iter().find(|(_, value)| *value == self).map(|(name, _)| *name)
            }

            /// The value of that name.
            pub fn from_name(name: &str) -> ::core::option::Option<Self> {
                Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            }
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }

        $crate::open_enum!(@show $name $($shown)?);

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }

        impl $crate::row::Scalar for $name {
            const KIND: $crate::row::ScalarKind = <$repr as $crate::row::Scalar>::KIND;
            const SIZE: usize = <$repr as $crate::row::Scalar>::SIZE;
            fn from_le(bytes: &[u8]) -> ::core::option::Option<Self> {
                <$repr as $crate::row::Scalar>::from_le(bytes).map(Self)
            }
            fn put_le(self, out: &mut [u8; 8]) {
                <$repr as $crate::row::Scalar>::put_le(self.0, out)
            }
        }

        impl $crate::__serde::Serialize for $name {
            fn serialize<S: $crate::__serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                match self.name() {
                    Some(name) => serializer.serialize_str(name),
                    None => $crate::__serde::Serialize::serialize(&self.0, serializer),
                }
            }
        }

        impl<'de> $crate::__serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                struct Visitor;
                impl $crate::__serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str(concat!("a name or number of ", stringify!($name)))
                    }
                    fn visit_str<E: $crate::__serde::de::Error>(self, v: &str) -> ::core::result::Result<$name, E> {
                        $name::from_name(v).ok_or_else(|| E::unknown_variant(v, &[$(stringify!($variant)),*]))
                    }
                    fn visit_i64<E: $crate::__serde::de::Error>(self, v: i64) -> ::core::result::Result<$name, E> {
                        v.try_into().map($name).map_err(|_| E::custom("number out of range"))
                    }
                    fn visit_u64<E: $crate::__serde::de::Error>(self, v: u64) -> ::core::result::Result<$name, E> {
                        v.try_into().map($name).map_err(|_| E::custom("number out of range"))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}
