/// Formats a coordinate of a chart, rounded to a tenth of a unit.
func coordinate(_ value: Double) -> String {
  let text = decimal(value, places: 1)
  return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}
