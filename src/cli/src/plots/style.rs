//! Sizes, colours and texts that all plots share.

use plotters::coord::CoordTranslate;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height of a plot, pixels.
pub(crate) const SIZE: (u32, u32) = (860, 520);
/// Text of axes and legends.
pub(crate) const SMALL: i32 = 14;
/// Text that says what an axis measures.
pub(crate) const MIDDLE: i32 = 15;
/// The plot's title.
pub(crate) const LARGE: i32 = 18;
pub(crate) const FAMILY: &str = "sans-serif";
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(crate) const PALE: RGBColor = RGBColor(0xe3, 0xe3, 0xe3);

/// Okabe and Ito's colours, told apart by colour-blind readers too; its yellow is left out, which white paper swallows.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x22, 0x22, 0x22),
];

/// The colour of the n-th policy; the same in every plot. The second turn is darker, so that fourteen can be told apart.
pub(crate) fn colour(number: usize) -> RGBColor {
    let RGBColor(red, green, blue) = COLOURS[number % COLOURS.len()];
    let darker = |part: u8| (f64::from(part) * 0.55).round() as u8;
    match number / COLOURS.len() % 2 {
        0 => RGBColor(red, green, blue),
        _ if number % COLOURS.len() == COLOURS.len() - 1 => RGBColor(0x88, 0x88, 0x88), // black has no darker one
        _ => RGBColor(darker(red), darker(green), darker(blue)),
    }
}

/// Draws lines across the plot and what the vertical axis counts; below, each plot names its own.
pub(crate) fn mesh<'a>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    vertical: &str,
) -> anyhow::Result<()> {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_desc(vertical)
        .axis_desc_style((FAMILY, MIDDLE).into_font().color(&INK))
        .label_style((FAMILY, SMALL).into_font().color(&INK))
        .y_label_formatter(&|value| number(*value))
        .axis_style(INK)
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(())
}

/// Draws the box that names the chart's series.
pub(crate) fn legend<'a, CT: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, CT>,
    at: SeriesLabelPosition,
) -> anyhow::Result<()> {
    chart
        .configure_series_labels()
        .position(at)
        .legend_area_size(30)
        .margin(12)
        .label_font((FAMILY, SMALL).into_font().color(&INK))
        .background_style(WHITE.mix(0.9))
        .border_style(PALE)
        .draw()?;
    Ok(())
}

/// The colour thinned with white to `share` of itself; opaque, so that no grid shows through.
pub(crate) fn tint(RGBColor(red, green, blue): RGBColor, share: f64) -> RGBColor {
    let thin = |part: u8| (255.0 - share * (255.0 - f64::from(part))).round() as u8;
    RGBColor(thin(red), thin(green), thin(blue))
}

/// A text style, anchored by its middle or an edge.
pub(crate) fn text(size: i32, h: HPos, v: VPos) -> TextStyle<'static> {
    (FAMILY, size).into_font().color(&INK).pos(Pos::new(h, v))
}

/// A number on an axis: no needless zeros, thousands apart.
pub(crate) fn number(value: f64) -> String {
    let decimals = if value.abs() >= 10.0 || value.fract() == 0.0 { 0 } else { 2 };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, part) =
        digits.split_once('.').map_or((digits, String::new()), |(whole, part)| (whole, format!(".{part}")));
    let mut apart = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    format!("{sign}{apart}{part}")
}

/// The smallest of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten that is at least `value`: where an axis ends.
pub(crate) fn ceiling(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|&end| end >= value * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourteen_policies_have_a_colour_each() {
        let colours: std::collections::BTreeSet<_> =
            (0..14).map(|number| (colour(number).0, colour(number).1, colour(number).2)).collect();
        assert_eq!(colours.len(), 14);
    }

    #[test]
    fn axes_have_round_ends_and_numbers_read_well() {
        assert_eq!(
            [ceiling(0.0), ceiling(1.0), ceiling(1.1), ceiling(43.0), ceiling(999.0)],
            [1.0, 1.0, 1.5, 50.0, 1000.0]
        );
        assert_eq!([number(0.0), number(1234567.0), number(0.25), number(12.0)], ["0", "1,234,567", "0.25", "12"]);
    }
}
