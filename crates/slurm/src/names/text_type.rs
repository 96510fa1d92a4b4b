//! The macros behind the newtypes over a checked `String`.

/// Implements the common traits of a checked text: parsing, display, `as_str`.
///
/// The type must be a tuple struct of one private `String` and have `fn check(&str) -> Result<String, Error>`, which
/// returns the canonical spelling. The error is [`InvalidName`](crate::InvalidName) unless another one is given.
#[macro_export]
macro_rules! text_type {
    ($name:ident) => {
        $crate::text_type!($name, $crate::InvalidName);
    };
    ($name:ident, $error:ty) => {
        impl $name {
            /// The text, in its canonical spelling.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::check(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

/// Declares a checked text that is right or wrong as it stands, so that its spelling is canonical.
macro_rules! word_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $allowed:literal, max $max:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde_with::SerializeDisplay, serde_with::DeserializeFromStr,
        )]
        pub struct $name(String);

        $crate::text_type!($name);

        impl $name {
            fn check(text: &str) -> Result<String, $crate::InvalidName> {
                let check: fn(&str) -> bool = $check;
                let is_right = text.len() <= $max && check(text);
                is_right.then(|| text.to_owned()).ok_or_else(|| $crate::InvalidName::new($kind, $allowed, text))
            }
        }
    };
}
pub(crate) use word_type;
