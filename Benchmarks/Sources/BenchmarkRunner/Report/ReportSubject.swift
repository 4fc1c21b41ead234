/// What a part of a page is about: an input of one size.
struct ReportSubject: Hashable {
  let input: MeasurementInput
  let size: Int

  /// What a summary is about.
  init(_ summary: Summary) { (input, size) = (summary.input, summary.size) }

  /// A heading.
  var title: String {
    switch input {
    case .people: "\(Units.count(size)) people"
    case .packages: "\(Units.count(size)) packages"
    case .lists: "An ordered list of \(Units.count(size)) objects"
    }
  }

  /// What links to it name.
  var anchor: String { "\(input.rawValue)-\(size)" }
}

extension MeasurementInput {
  /// What there are so many of.
  var unit: String {
    switch self {
    case .people: "people"
    case .packages: "packages"
    case .lists: "objects in the list"
    }
  }
}
