// Generated from the model. Don't change it: it is overwritten.

import Holdfast

/// The model.
nonisolated enum FullModelClasses {
  /// All classes.
  static var classes: [ManagedObject.Type] {
    [
      Base.self,
      Item.self,
      Owner.self,
    ]
  }

  /// The fetch request template plain.
  static func plain() -> FetchRequest<Owner> {
    var request = Owner.fetchRequest()
    request.includesSubentities = true
    request.includesPendingChanges = true
    return request
  }
}
