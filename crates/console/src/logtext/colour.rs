//! The colours of terminals, by the 16 that the style sheet has for both of its themes.

/// One of 16 colours, numbered as terminals do.
pub(super) type Colour = u8;

/// The colour of a palette of 256.
pub(super) fn of_palette(number: u16) -> Colour {
    match u8::try_from(number).unwrap_or(7) {
        basic @ 0..16 => basic,
        cube @ 16..232 => {
            let cube = cube - 16;
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        grey => {
            let level = 8 + 10 * (grey - 232);
            nearest(level, level, level)
        }
    }
}

/// The colour that is most like this one.
pub(super) fn nearest(red: u8, green: u8, blue: u8) -> Colour {
    let most = red.max(green).max(blue);
    let least = red.min(green).min(blue);
    if most - least < 32 {
        return match most {
            0..64 => 0,
            64..150 => 8,
            150..220 => 7,
            220.. => 15,
        };
    }
    // A part counts if it is in the upper half of the colour's own range.
    let middle = least + (most - least) / 2;
    let hue = u8::from(red > middle) | u8::from(green > middle) << 1 | u8::from(blue > middle) << 2;
    if most > 220 { hue | 8 } else { hue }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(1 => 1; "a basic colour")]
    #[test_case(196 => 9; "bright red of the cube")]
    #[test_case(28 => 2; "green of the cube")]
    #[test_case(232 => 0; "black of the greys")]
    #[test_case(255 => 15; "white of the greys")]
    #[test_case(9999 => 7; "no colour")]
    fn a_colour_of_the_palette_is_one_of_sixteen(number: u16) -> Colour {
        of_palette(number)
    }

    #[test_case((255, 165, 0) => 11; "orange is yellow")]
    #[test_case((120, 0, 120) => 5; "purple is magenta")]
    #[test_case((90, 90, 100) => 8; "grey")]
    fn any_colour_is_one_of_sixteen((red, green, blue): (u8, u8, u8)) -> Colour {
        nearest(red, green, blue)
    }
}
