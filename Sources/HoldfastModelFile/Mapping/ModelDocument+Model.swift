public import HoldfastStore

extension ModelDocument {
  /// Creates the model that the document describes, checked and frozen.
  ///
  /// Omits everything without a meaning at run time: the editor's drawing, the settings of generated code, marks for other programs.
  ///
  /// - Parameters:
  ///   - path: The path shown in errors, or nil.
  ///   - options: The limits.
  /// - Throws: ``ModelFileError``, with the line and the element where possible: `missingAttribute`, `invalidValue` and `tooLarge` for one
  ///   element; `contradictory` with all contradictions in its cause, a ``/HoldfastStore/ModelError``.
  public func model(path: String? = nil, options: ModelFileOptions = ModelFileOptions()) throws(ModelFileError) -> ManagedObjectModel {
    let declarations = try declarations(path, options)
    do {
      return try ManagedObjectModel(declarations)
    } catch {
      throw contradiction(error, path)
    }
  }

  func declarations(_ path: String?, _ options: ModelFileOptions) throws(ModelFileError) -> ModelDeclarations {
    do throws(ModelFileError) { return try ModelDeclarations(self, options) } catch { throw error.at(path) }
  }

  /// The error for contradictory declarations, at the line of the first one.
  func contradiction(_ error: ModelError, _ path: String?) -> ModelFileError {
    guard let first = error.problems.first else { return ModelFileError(.contradictory, path: path, reason: "\(error)", cause: error) }
    let more = error.problems.count - 1
    let reason = more == 0 ? first.reason : "\(first.reason) (And \(more) more \(more == 1 ? "contradiction" : "contradictions").)"
    return ModelFileError(.contradictory, path: path, line: line(of: first.path), element: first.path, reason: reason, cause: error)
  }

  /// The line of a path in the model's check: `Person`, `Person.age`, `composite Place`.
  private func line(of path: String) -> Int? {
    for kind in ["composite", "configuration", "fetch request"] where path.hasPrefix(kind + " ") {
      return child(kind == "fetch request" ? "fetchRequest" : kind, named: String(path.dropFirst(kind.count + 1)))?.line
    }
    let names = path.split(separator: ".", maxSplits: 1).map(String.init)
    guard let entityName = names.first, let entity = child("entity", named: entityName) else { return nil }
    guard names.count > 1 else { return entity.line }
    return entity.children.first { $0["name"] == names[1] }?.line ?? entity.line
  }

  private func child(_ kind: String, named name: String) -> ModelElement? {
    root.children.first { $0.name == kind && $0["name"] == name }
  }
}

extension ModelDocument {
  /// Creates a document of a model, for a file that Xcode opens.
  ///
  /// Entities and properties are in Xcode's order, by name. A model created from the document is equal to this one, except for the order,
  /// and has the same version hashes. A model that a file can't represent is refused.
  ///
  /// - Throws: ``ModelFileError`` with code `unwritable` for a model that a file can't represent. <doc:ModelFiles> lists the reasons.
  public init(_ model: ManagedObjectModel) throws(ModelFileError) {
    // The values that Xcode 15 writes.
    root = ModelElement(
      "model",
      [
        "type": "com.apple.IDECoreDataModeler.DataModel", "documentVersion": "1.0", "lastSavedToolsVersion": "22522",
        "systemVersion": "23E224", "minimumToolsVersion": "Automatic", "sourceLanguage": "Swift",
      ])
    guard model.versionIdentifiers.count <= 1 else {
      throw ModelFileError(
        unwritable: nil,
        "The model has \(model.versionIdentifiers.count) version identifiers; a model file has one. Create the model with one of them.")
    }
    root["userDefinedModelVersionIdentifier"] = model.versionIdentifiers.first
    try IgnoredIndexes.checkMarks(model.declarations)
    for entity in NameOrder.sorted(model.declarations, by: \.name) { root.children.append(try EntityWriter.element(entity)) }
    for request in model.fetchRequestTemplates {
      root.children.append(try EntityWriter.element(request, "fetch request \(request.name.quoted)"))
    }
    for configuration in model.configurations {
      let members = configuration.entities.map { ModelElement("memberEntity", ["name": $0]) }
      root.children.append(ModelElement("configuration", ["name": configuration.name], children: members))
    }
    for composite in model.composites {
      var element = ModelElement("composite", ["name": composite.name])
      for attribute in composite.elements {
        element.children.append(try AttributeWriter.element(attribute, of: "composite \(composite.name.quoted)"))
      }
      root.children.append(element)
    }
  }
}

extension ManagedObjectModel {
  convenience init(_ declarations: ModelDeclarations) throws(ModelError) {
    try self.init(
      entities: declarations.entities, versionIdentifiers: declarations.versionIdentifiers, configurations: declarations.configurations,
      composites: declarations.composites, fetchRequestTemplates: declarations.fetchRequestTemplates)
  }
}
