import HoldfastStore

/// The list of a model's classes, and its fetch request templates.
struct ModelListCode {
  let typeName: String
  let source: String
  /// The types of the parameters of templates.
  private(set) var types: [String] = []
  /// Templates that have no code, and those whose result is another one.
  private(set) var notes: [String] = []
  private let accessLevel: ModelCode.Access

  init(_ model: ManagedObjectModel, name: String, _ names: SwiftNames, _ accessLevel: ModelCode.Access) {
    self.accessLevel = accessLevel
    typeName = SwiftNames.list(name)
    let access = accessLevel.prefix
    let classes = model.declarations.map { names.className($0.name) }.sorted().map { "\($0).self" }
    var members = [
      "/// All classes.\n\(access)static var classes: [ManagedObject.Type] {\n\(SwiftText.indented(SwiftText.lines(classes)))\n}"
    ]
    var taken = names.namesBesideFunctions
    for template in model.fetchRequestTemplates.sorted(by: { SwiftText.precedes($0.name, $1.name) }) {
      var function = SwiftNames.template(template.name)
      while !taken.insert(function).inserted { function = function.filter { $0 != "`" } + "Request" }
      do throws(PredicateProblem) {
        let code = try TemplateCode(template, name: function, model, names, access: access)
        members.append(code.source)
        types += code.types
        if template.resultType == .dictionaries {
          notes.append("Fetch request template \(template.name): The generated request fetches objects, not dictionaries.")
        }
      } catch { notes.append("Fetch request template \(template.name): It has no code. \(error.reason)") }
    }
    source =
      "/// The model.\n\(accessLevel.typePrefix)enum \(typeName) {\n"
      + SwiftText.indented(members.joined(separator: "\n\n")) + "\n}\n"
  }

  var file: String { SwiftText.file(source, accessLevel, types: types) }
}
