/// The subject of a section: an input of one size.
struct ReportSubject: Hashable {
  let input: MeasurementInput
  let size: Int

  /// The subject of a summary.
  init(_ summary: Summary) { (input, size) = (summary.input, summary.size) }

  /// A heading.
  var title: String {
    switch input {
    case .people: "\(Units.count(size)) people"
    case .packages: "\(Units.count(size)) packages"
    case .lists: "An ordered list of \(Units.count(size)) objects"
    }
  }

  /// The target of links to the section.
  var anchor: String { "\(input.rawValue)-\(size)" }
}

extension MeasurementInput {
  /// The name of the input's objects.
  var unit: String {
    switch self {
    case .people: "people"
    case .packages: "packages"
    case .lists: "objects in the list"
    }
  }
}
