#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Formats a number with a fixed number of decimals like `%.Nf`, with a decimal point in every locale.
func decimal(_ value: Double, places: Int) -> String {
  precondition((0...9).contains(places), "A number is written with at most nine decimal places.")
  guard value.isFinite, value.magnitude < 9e9 else { return String(value) }
  let scale = (0..<places).reduce(1) { power, _ in power * 10 } as Int64
  let scaled = Int64((value * Double(scale)).rounded(.toNearestOrEven))
  let sign = scaled < 0 ? "-" : ""
  let whole = String(scaled.magnitude / UInt64(scale))
  guard places > 0 else { return sign + whole }
  let fraction = String(scaled.magnitude % UInt64(scale))
  return sign + whole + "." + String(repeating: "0", count: places - fraction.count) + fraction
}
