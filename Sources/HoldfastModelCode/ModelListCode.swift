import HoldfastStore

/// The list of a model's classes, and its fetch request templates.
struct ModelListCode {
  private let model: ManagedObjectModel
  private let names: SwiftNames
  private let accessLevel: ModelCode.Access
  let typeName: String

  init(_ model: ManagedObjectModel, name: String, _ names: SwiftNames, _ access: ModelCode.Access) {
    (self.model, self.names, accessLevel) = (model, names, access)
    let base = SwiftNames.capitalized(name)
    typeName = base + "ModelClasses"
  }

  var file: String { SwiftText.file(source, accessLevel) }

  /// Templates that have no code.
  var notes: [String] {
    templates.filter { !isTyped($0) }.map {
      "Fetch request template \($0.name): It has no typed request, because it has a predicate or doesn't return objects. Write it in code."
    }
  }

  private func isTyped(_ template: FetchRequestDescription) -> Bool {
    template.predicateFormat == nil && template.resultType == .managedObjects
  }

  private var templates: [FetchRequestDescription] { model.fetchRequestTemplates.sorted { $0.name < $1.name } }

  var source: String {
    let access = accessLevel.prefix
    let classes = model.declarations.map { names.className($0.name) }.sorted().map { "    \($0).self,\n" }.joined()
    var text =
      "/// The model.\n\(accessLevel.typePrefix)enum \(typeName) {\n  /// All classes.\n  \(access)static var classes: [ManagedObject.Type] {\n    [\n"
      + SwiftText.indented(classes, 2) + "    ]\n  }\n"
    for template in templates where isTyped(template) {
      let name = names.className(template.entity)
      text +=
        "\n  /// The fetch request template \(SwiftText.comment(template.name)).\n  \(access)static func \(SwiftNames.template(template.name))() "
        + "-> FetchRequest<\(name)> {\n    var request = \(name).fetchRequest()\n"
        + (template.fetchLimit > 0 ? "    request.fetchLimit = \(template.fetchLimit)\n" : "")
        + "    request.includesSubentities = \(template.includesSubentities)\n"
        + "    request.includesPendingChanges = \(template.includesPendingChanges)\n    return request\n  }\n"
    }
    return text + "}\n"
  }
}
