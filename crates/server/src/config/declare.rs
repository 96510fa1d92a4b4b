//! One declaration for each setting. `section!` turns it into the field, its default, its place in the file, its environment
//! variables and its part of the example file.

use toml::Value;

use super::environment::Environment;

/// A declared key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    /// The environment variables that set it. The first one that is set counts.
    pub(crate) variables: &'static [&'static str],
    /// A value in TOML, for keys whose default is not a good example.
    pub(crate) example: Option<&'static str>,
    pub(crate) is_required: bool,
}

/// A table of keys.
pub(crate) trait Section: Default {
    const DOC: &'static [&'static str];
    const KEYS: &'static [Key];
    fn entries(&self) -> Vec<&dyn Entry>;
    fn entries_mut(&mut self) -> Vec<&mut dyn Entry>;
}

/// A type that a key can have.
pub(crate) trait Setting: Sized {
    /// What it takes: "a whole number".
    const TAKES: &'static str;
    /// From the file.
    fn of_value(value: &Value) -> Option<Self>;
    /// From an environment variable.
    fn of_text(text: &str) -> Option<Self>;
    /// As the file would have it, without secrets; none if it is not set.
    fn shown(&self) -> Option<Value>;
}

/// What a section holds: keys and other sections.
pub(crate) trait Entry {
    /// Takes what the source says and reports what is wrong with it. `at` is the path of the key.
    fn read(&mut self, source: Source<'_>, key: &Key, at: &str, report: &mut Report<'_>);
    fn visit(&self, key: &'static Key, at: &str, visit: &mut Visitor<'_>);
}

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Value(&'a Value),
    Variables(&'a Environment),
}

/// Takes the place of a wrong value, and what is wrong with it.
pub(crate) type Report<'a> = dyn FnMut(&str, String) + 'a;
pub(crate) type Visitor<'a> = dyn FnMut(&str, Item) + 'a;

/// What a walk through the settings meets, in the order of declaration.
pub(crate) enum Item {
    Section { doc: &'static [&'static str], kind: Kind },
    Key { key: &'static Key, shown: Option<Value> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    /// A table that switches something on.
    Optional,
    /// One table of many.
    Element,
}

impl<T: Setting> Entry for T {
    fn read(&mut self, source: Source<'_>, key: &Key, at: &str, report: &mut Report<'_>) {
        let (place, seen, read) = match source {
            Source::Value(value) => (at.to_owned(), seen(value), T::of_value(value)),
            Source::Variables(environment) => {
                let Some((name, text)) = environment.first(key.variables) else { return };
                (format!("{name}: {at}"), format!("{text:?}"), T::of_text(text.trim()))
            }
        };
        if let Some(read) = read {
            *self = read;
        } else {
            let default = || self.shown().map(|value| value.to_string());
            let example = key.example.map(str::to_owned).or_else(default).unwrap_or_default();
            report(&place, format!("{seen} is not {}; write for example {example}", T::TAKES));
        }
    }

    fn visit(&self, key: &'static Key, at: &str, visit: &mut Visitor<'_>) {
        visit(at, Item::Key { key, shown: self.shown() });
    }
}

pub(crate) fn read_section<S: Section>(
    section: &mut S,
    source: Source<'_>,
    at: &str,
    report: &mut Report<'_>,
) {
    let table = match source {
        Source::Variables(_) => None,
        Source::Value(Value::Table(table)) => Some(table),
        Source::Value(value) => {
            return report(at, format!("{} is not a table; write [{at}] and its keys below it", seen(value)));
        }
    };
    for (key, entry) in S::KEYS.iter().zip(section.entries_mut()) {
        match table.map(|table| table.get(key.name)) {
            None => entry.read(source, key, &below(at, key.name), report),
            Some(Some(value)) => entry.read(Source::Value(value), key, &below(at, key.name), report),
            Some(None) => {}
        }
    }
    for name in table.into_iter().flat_map(toml::Table::keys) {
        if S::KEYS.iter().all(|key| key.name != name) {
            let known: Vec<_> = S::KEYS.iter().map(|key| key.name).collect();
            let advice = format!("there is no key `{name}` here; the keys are {}", known.join(", "));
            report(&below(at, name), advice);
        }
    }
}

pub(crate) fn visit_section<S: Section>(section: &S, at: &str, kind: Kind, visit: &mut Visitor<'_>) {
    visit(at, Item::Section { doc: S::DOC, kind });
    for (key, entry) in S::KEYS.iter().zip(section.entries()) {
        entry.visit(key, &below(at, key.name), visit);
    }
}

fn below(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// A list or a table may be long, or hold a secret.
pub(crate) fn seen(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        value => value.to_string(),
    }
}

/// Declares a section: `/// doc`, `key: Type`, and what there is of `= default`, `env "NAME" | "OTHER NAME"`,
/// `example "in TOML"`, and `required "in TOML"`: an example that is no comment in the example file. It needs the modules
/// `declare` and `section` in scope.
macro_rules! section {
    ($(#[doc = $about:literal])* $section:ident { $(
        $(#[doc = $doc:literal])*
        $key:ident: $type:ty $(= $default:expr)? $(, env $($variable:literal)|+)? $(, example $example:literal)? $(, required $required:literal)?;
    )* }) => {
        #[derive(Debug, Clone)]
        pub(crate) struct $section { $( pub(crate) $key: $type, )* }

        impl Default for $section {
            fn default() -> Self {
                Self { $( $key: section!(@default $($default)?), )* }
            }
        }

        impl declare::Entry for $section {
            fn read(&mut self, source: declare::Source<'_>, _: &declare::Key, at: &str, report: &mut declare::Report<'_>) {
                declare::read_section(self, source, at, report);
            }

            fn visit(&self, _: &'static declare::Key, at: &str, visit: &mut declare::Visitor<'_>) {
                declare::visit_section(self, at, declare::Kind::Table, visit);
            }
        }

        impl declare::Section for $section {
            const DOC: &'static [&'static str] = &[$($about),*];
            const KEYS: &'static [declare::Key] = &[$( declare::Key {
                name: stringify!($key),
                doc: &[$($doc),*],
                variables: &[$($($variable),+)?],
                example: section!(@example $($example)? $($required)?),
                is_required: section!(@is $($required)?),
            } ),*];

            fn entries(&self) -> Vec<&dyn declare::Entry> {
                vec![$( &self.$key ),*]
            }

            fn entries_mut(&mut self) -> Vec<&mut dyn declare::Entry> {
                vec![$( &mut self.$key ),*]
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@example) => { None };
    (@example $example:literal) => { Some($example) };
    (@is) => { false };
    (@is $required:literal) => { true };
}
pub(crate) use section;
