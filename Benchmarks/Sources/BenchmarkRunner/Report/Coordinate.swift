/// A coordinate of a chart: a tenth of a unit is as fine as anybody sees.
func coordinate(_ value: Double) -> String {
  let text = decimal(value, places: 1)
  return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}
