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

  /// The fetch request template all.
  ///
  /// Its predicate is `text == $text AND whole16 > 5 AND text != "<&>"`.
  ///
  /// In the model, its result is dictionaries of values. This request fetches objects.
  static func all(text: String) -> FetchRequest<Item> {
    var request = Item.fetchRequest()
    request.predicate = FetchPredicate<Item> {
      $0.text == text
      $0.whole16 > 5
      $0.text != "<&>"
    }
    request.fetchLimit = 10
    request.includesSubentities = false
    request.includesPendingChanges = false
    return request
  }

  /// The fetch request template plain.
  static func plain() -> FetchRequest<Owner> {
    Owner.fetchRequest()
  }
}
