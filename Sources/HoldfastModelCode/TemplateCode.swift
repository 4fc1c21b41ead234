import HoldfastStore

/// The function of a fetch request template.
struct TemplateCode {
  /// The types of the parameters, without those of collections and optionals.
  private(set) var types: [String] = []
  private let lines: [String]

  /// Generates the function.
  ///
  /// - Throws: A ``PredicateProblem`` if a query can't have the predicate.
  init(
    _ template: FetchRequestDescription, name: String, _ model: ManagedObjectModel, _ names: SwiftNames, access: String
  ) throws(PredicateProblem) {
    var code = PredicateCode(model, names), settings: [String] = []
    let className = names.className(template.entity)
    var closure: String?
    if let text = template.predicateFormat, !text.allSatisfy(\.isWhitespace) {
      closure = try code.closure(of: PredicateParser.predicate(text).simplified, template.entity)
    }
    let parameters = code.parameters
    // A parameter can have the name of the variable.
    var request = "request"
    while parameters.contains(where: { $0.name == request }) { request += "_" }
    if let closure { settings.append("\(request).predicate = FetchPredicate<\(className)>\(closure)") }
    if template.fetchLimit > 0 { settings.append("\(request).fetchLimit = \(template.fetchLimit)") }
    if !template.includesSubentities { settings.append("\(request).includesSubentities = false") }
    if !template.includesPendingChanges { settings.append("\(request).includesPendingChanges = false") }
    let body =
      settings.isEmpty
      ? ["\(className).fetchRequest()"] : ["var \(request) = \(className).fetchRequest()"] + settings + ["return \(request)"]
    types = parameters.map(\.type.name)
    lines =
      TemplateCode.comment(template)
      + [
        SwiftText.call(
          "\(access)static func \(name)", parameters.map { "\($0.name): \($0.type.text)" }, end: " -> FetchRequest<\(className)> {")
      ]
      + body.map { SwiftText.indented($0) } + ["}"]
  }

  var source: String { lines.joined(separator: "\n") }

  private static func comment(_ template: FetchRequestDescription) -> [String] {
    var lines = ["/// The fetch request template \(SwiftText.comment(template.name))."]
    if let predicate = template.predicateFormat { lines += ["///", "/// Its predicate is `\(SwiftText.comment(predicate))`."] }
    switch template.resultType {
    case .managedObjectIDs: lines += ["///", "/// Its result is object IDs: pass it to `fetchObjectIDs(_:)`."]
    case .count: lines += ["///", "/// Its result is a number: pass it to `count(for:)`."]
    case .dictionaries: lines += ["///", "/// In the model, its result is dictionaries of values. This request fetches objects."]
    default: break
    }
    return lines
  }
}
