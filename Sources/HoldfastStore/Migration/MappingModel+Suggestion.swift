extension MappingModel {
  /// The code of a stage that sets the properties that need a decision, to be completed; nil if code can set none of them.
  func suggestion(for problems: [MigrationError.Problem]) -> String? {
    let paths = problems.map(\.path)
    var lines: [String] = []
    for mapping in entityMappings {
      guard let index = mapping.source else { continue }
      let entity = destination.entities[mapping.destination], former = source.entities[index], prefix = entity.name + "."
      let settings = paths.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }.compactMap { name in
        isSetBySuperentity(name, of: entity, paths) ? nil : Self.setting(of: name, entity, former, destination)
      }
      if settings.isEmpty { continue }
      lines += ["  try stage.forEach(\(former.name.debugDescription)) { old, new in"] + settings.map { "    \($0)" } + ["  }"]
    }
    return lines.isEmpty ? nil : (["plan.add(model, named: \"…\") { stage in"] + lines + ["}"]).joined(separator: "\n")
  }

  /// Whether the loop over the objects of a superentity, which has those of its subentities, sets a property.
  private func isSetBySuperentity(_ name: String, of entity: ManagedObjectModel.Entity, _ paths: [String]) -> Bool {
    var next = entity.superentityIndex
    while let index = next {
      if paths.contains("\(destination.entities[index].name).\(name)"), mapping(of: index).source != nil { return true }
      next = destination.entities[index].superentityIndex
    }
    return false
  }

  /// The statement that sets a property; nil for one that no code sets.
  private static func setting(
    of name: String, _ entity: ManagedObjectModel.Entity, _ former: ManagedObjectModel.Entity, _ model: ManagedObjectModel
  ) -> String? {
    let statement = "try new.setValue(…, forKey: \(name.debugDescription))"
    if let relationship = entity.relationship(named: name) {
      let destination = model.destination(of: relationship).name
      return "\(statement)  // \(relationship.isToMany ? "objects" : "an object") of \(destination)"
    }
    guard let attribute = entity.attributes.first(where: { $0.name == name }), attribute.derivation == nil else { return nil }
    let before = former.attributes.first { $0.name == name }
    return "\(statement)  // \(attribute.type.rawValue)"
      + (before.map { ", formerly \($0.type.rawValue): old[\(name.debugDescription)]" } ?? "")
  }
}
