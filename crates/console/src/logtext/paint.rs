//! Escape sequences of one line: those for colours and weights become classes, all others that move the cursor are left out.

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use super::colour::{Colour, nearest, of_palette};
use crate::model::push_visible;

/// How the next letters look. Text that would be invisible is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "terminals have as many")]
pub(super) struct Style {
    front: Option<Colour>,
    back: Option<Colour>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    struck: bool,
    inverse: bool,
}

impl Style {
    /// The classes; none for plain text. A background has a front colour of its own that can be read on it.
    fn classes(self) -> String {
        let mut classes = Vec::new();
        let (front, back) = if self.inverse { (self.back, self.front) } else { (self.front, self.back) };
        match (front, back) {
            (_, Some(back)) => classes.push(format!("b{back}")),
            (Some(front), None) if !self.inverse => classes.push(format!("f{front}")),
            _ if self.inverse => classes.push("inverse".to_owned()),
            _ => {}
        }
        let flags = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underline, "under"),
            (self.struck, "struck"),
        ];
        classes.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned()));
        classes.join(" ")
    }

    /// SGR (ECMA-48 §8.3.117).
    fn change(&mut self, codes: &[u16]) {
        let mut codes = codes.iter().copied();
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.struck = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.struck = false,
                30..38 => self.front = Some(of_palette(code - 30)),
                38 => self.front = extended(&mut codes).or(self.front),
                39 => self.front = None,
                40..48 => self.back = Some(of_palette(code - 40)),
                48 => self.back = extended(&mut codes).or(self.back),
                49 => self.back = None,
                90..98 => self.front = Some(of_palette(code - 82)),
                100..108 => self.back = Some(of_palette(code - 92)),
                _ => {}
            }
        }
    }
}

fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<Colour> {
    let mut part = || codes.next();
    match part()? {
        5 => Some(of_palette(part()?)),
        2 => {
            let mut level = || Some(u8::try_from(part()?).unwrap_or(u8::MAX));
            Some(nearest(level()?, level()?, level()?))
        }
        _ => None,
    }
}

/// Writes a line as HTML.
struct Painter<'a> {
    style: &'a mut Style,
    html: String,
    /// Letters of the same style that are not written yet.
    run: String,
}

impl Painter<'_> {
    fn flush(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let classes = self.style.classes();
        if classes.is_empty() {
            push_visible(&mut self.html, &self.run);
        } else {
            self.html.push_str("<span class=\"");
            self.html.push_str(&classes);
            self.html.push_str("\">");
            push_visible(&mut self.html, &self.run);
            self.html.push_str("</span>");
        }
        self.run.clear();
    }
}

impl Perform for Painter<'_> {
    fn print(&mut self, letter: char) {
        self.run.push(letter);
    }

    fn execute(&mut self, byte: u8) {
        self.run.push(char::from(byte));
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: u8) {
        if action != b'm' || !intermediates.is_empty() {
            return;
        }
        self.flush();
        // Parts of a colour may be separated by colons: `38:2::255:0:0` has an empty one more.
        let groups = params.iter().flat_map(|group| match group {
            [kind @ (38 | 48), 2, _, rest @ ..] if rest.len() >= 3 => [&[*kind, 2][..], rest].concat(),
            group => group.to_vec(),
        });
        self.style.change(&groups.collect::<Vec<_>>());
    }
}

/// A line without its end as HTML. The style of its end is that of the next line's beginning.
pub(super) fn paint(line: &str, style: &mut Style) -> String {
    let mut painter =
        Painter { style, html: String::with_capacity(line.len() + line.len() / 8), run: String::new() };
    let mut parser = Parser::<DefaultCharAccumulator>::default();
    let mut bytes = line.bytes().peekable();
    while let Some(byte) = bytes.next() {
        // A command with a text of its own, such as a title, could hide the rest of the line: it is shown instead.
        if byte == 0x1b && bytes.peek().is_some_and(|next| matches!(next, b'P' | b'X' | b']' | b'^' | b'_')) {
            painter.run.push('\u{1b}');
            parser = Parser::default();
            continue;
        }
        parser.advance(&mut painter, byte);
    }
    painter.flush();
    painter.html
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("plain <b>" => "plain &lt;b&gt;"; "no sequence")]
    #[test_case("\u{1b}[31mred\u{1b}[0m not" => "<span class=\"f1\">red</span> not"; "a colour")]
    #[test_case("\u{1b}[1;38;5;196mx" => "<span class=\"f9 bold\">x</span>"; "a colour of the palette")]
    #[test_case("\u{1b}[38;2;0;0;255mx" => "<span class=\"f12\">x</span>"; "any colour")]
    #[test_case("\u{1b}[38:2::0:0:255mx" => "<span class=\"f12\">x</span>"; "any colour with colons")]
    #[test_case("\u{1b}[30;40mx" => "<span class=\"b0\">x</span>"; "black on black can be read")]
    #[test_case("\u{1b}[8mx" => "x"; "concealed text is shown")]
    #[test_case("\u{1b}[7mx\u{1b}[27my" => "<span class=\"inverse\">x</span>y"; "inverse")]
    #[test_case("a\u{1b}[2K\u{1b}[1Ab" => "ab"; "movements of the cursor")]
    #[test_case("\u{1b}]0;title and all the rest" => "<span class=\"odd\">␛</span>]0;title and all the rest"; "a title without an end")]
    #[test_case("\u{1b}]8;;http://x\u{1b}\\link" => "<span class=\"odd\">␛</span>]8;;http://xlink"; "a link")]
    #[test_case("\u{1b}P hidden" => "<span class=\"odd\">␛</span>P hidden"; "a device control string")]
    #[test_case("a\u{8}b\u{7}" => "a<span class=\"odd\">␈</span>b<span class=\"odd\">␇</span>"; "a step back and a bell")]
    #[test_case("é ✓ \u{202e}" => "é ✓ <span class=\"odd\">U+202E</span>"; "letters of any language")]
    #[test_case("\u{1b}[31" => ""; "a sequence without an end")]
    #[test_case("\u{1b}[38;5mx\u{1b}[38mx" => "xx"; "a colour without its number")]
    fn a_line_becomes_html(line: &str) -> String {
        paint(line, &mut Style::default())
    }

    #[test]
    fn a_style_lasts_until_it_is_changed() {
        let mut style = Style::default();
        paint("\u{1b}[32mgreen", &mut style);
        assert_eq!(paint("still", &mut style), "<span class=\"f2\">still</span>");
        assert_eq!(paint("\u{1b}[mplain", &mut style), "plain");
    }
}
